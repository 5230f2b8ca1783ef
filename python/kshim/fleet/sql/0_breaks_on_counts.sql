-- SPDX-License-Identifier: Apache-2.0
-- How many processes, programs, users, jobs and runs break on a GPU?
-- :gpu text default 10.0: compute capability
SELECT SUM(p.sample) AS processes,
       SUM(CASE WHEN b.breaks = 1 THEN p.sample ELSE 0 END) AS that_break,
       SUM(CASE WHEN b.breaks IS NULL OR b.breaks = 0 AND b.unknown = 1 THEN p.sample ELSE 0 END) AS not_known,
       COUNT(DISTINCT p.exe) AS programs,
       COUNT(DISTINCT CASE WHEN b.breaks = 1 THEN p.exe END) AS programs_that_break,
       COUNT(DISTINCT p.user) AS users,
       COUNT(DISTINCT CASE WHEN b.breaks = 1 THEN p.user END) AS users_that_break,
       COUNT(DISTINCT p.job) AS jobs,
       COUNT(DISTINCT CASE WHEN b.breaks = 1 THEN p.job END) AS jobs_that_break,
       COUNT(DISTINCT p.run) AS runs,
       COUNT(DISTINCT CASE WHEN b.breaks = 1 THEN p.run END) AS runs_that_break
FROM processes p
LEFT JOIN (SELECT l.process_id,
                  MAX(CASE WHEN s.how = 'none' THEN 1 ELSE 0 END) AS breaks,
                  MAX(CASE WHEN s.how IS NULL THEN 1 ELSE 0 END) AS unknown
           FROM loads l
           LEFT JOIN serves s ON s.file_id = l.file_id AND s.compute_capability = :gpu
           GROUP BY l.process_id) b ON b.process_id = p.row_id
