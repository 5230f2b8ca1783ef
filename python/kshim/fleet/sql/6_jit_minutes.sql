-- SPDX-License-Identifier: Apache-2.0
-- How many minutes does each package lose to compiling PTX?
SELECT l.package, l.version, MIN(l.path) AS path,
       ROUND(SUM(l.ms * p.sample) / 60000, 3) AS minutes,
       SUM(l.count * p.sample) AS loads,
       COUNT(DISTINCT p.exe) AS programs,
       COUNT(DISTINCT p.user) AS users
FROM loads l
JOIN processes p ON p.row_id = l.process_id
WHERE l.jit
GROUP BY l.package, l.version
ORDER BY minutes DESC NULLS LAST, l.package NULLS LAST, l.version NULLS LAST
