-- SPDX-License-Identifier: Apache-2.0
-- Which libraries have no machine code for a GPU, by the number of processes that load them?
-- :gpu text default 10.0: compute capability
SELECT l.package, l.version, l.path, s.how,
       SUM(p.sample) AS processes,
       COUNT(DISTINCT p.user) AS users
FROM (SELECT DISTINCT process_id, file_id, path, package, version FROM loads) l
JOIN serves s ON s.file_id = l.file_id AND s.compute_capability = :gpu AND s.how <> 'sass'
JOIN processes p ON p.row_id = l.process_id
GROUP BY l.package, l.version, l.path, s.how
ORDER BY processes DESC NULLS LAST, l.path NULLS LAST
