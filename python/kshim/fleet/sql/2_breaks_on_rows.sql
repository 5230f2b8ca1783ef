-- SPDX-License-Identifier: Apache-2.0
-- Which users and jobs run programs that break on a GPU?
-- :gpu text default 10.0: compute capability
SELECT p.user, p.account, p.exe, l.path, l.package, l.version,
       SUM(p.sample) AS processes,
       COUNT(DISTINCT p.job) AS jobs,
       MAX(p.job) AS last_job,
       MAX(p.time) AS last_seen
FROM (SELECT DISTINCT process_id, file_id, path, package, version FROM loads) l
JOIN serves s ON s.file_id = l.file_id AND s.compute_capability = :gpu AND s.how = 'none'
JOIN processes p ON p.row_id = l.process_id
GROUP BY p.user, p.account, p.exe, l.path, l.package, l.version
ORDER BY processes DESC NULLS LAST, p.user NULLS LAST, p.exe NULLS LAST, l.path NULLS LAST
