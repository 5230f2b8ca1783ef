-- SPDX-License-Identifier: Apache-2.0
-- Which programs use files that have no code for a GPU?
-- :gpu text default 10.0: compute capability
SELECT p.exe,
       SUM(p.sample) AS processes,
       COUNT(DISTINCT p.user) AS users,
       COUNT(DISTINCT p.job) AS jobs,
       COUNT(DISTINCT p.run) AS runs,
       MAX(b.files) AS files,
       MIN(b.first_file) AS first_file,
       MAX(p.time) AS last_seen
FROM (SELECT l.process_id, COUNT(DISTINCT l.file_id) AS files, MIN(l.path) AS first_file
      FROM loads l
      JOIN serves s ON s.file_id = l.file_id AND s.compute_capability = :gpu AND s.how = 'none'
      GROUP BY l.process_id) b
JOIN processes p ON p.row_id = b.process_id
GROUP BY p.exe
ORDER BY processes DESC NULLS LAST, p.exe NULLS LAST
