-- SPDX-License-Identifier: Apache-2.0
-- How many minutes does each package lose to compiling PTX?
SELECT l.package, l.version, MIN(l.path) AS path,
       ROUND(SUM(l.ms) / 60000, 3) AS minutes,
       SUM(l.count) AS loads,
       COUNT(DISTINCT l.process_id) AS processes
FROM loads l
WHERE l.jit
GROUP BY l.package, l.version
ORDER BY minutes DESC NULLS LAST, l.package NULLS LAST
