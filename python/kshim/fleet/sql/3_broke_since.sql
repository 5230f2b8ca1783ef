-- SPDX-License-Identifier: Apache-2.0
-- What fails since a date that did not fail before?
-- :since text default 2026-01-01: first day of the new state
SELECT f.cause, f.package, f.version, f.path, f.compute_capability,
       SUM(p.sample) AS processes,
       COUNT(DISTINCT p.exe) AS programs,
       COUNT(DISTINCT p.user) AS users,
       MIN(f.time) AS first_seen
FROM (SELECT DISTINCT process_id, time, cause, package, version, path, compute_capability
      FROM findings WHERE severity = 'error' AND NOT hypothetical) f
JOIN processes p ON p.row_id = f.process_id
GROUP BY f.cause, f.package, f.version, f.path, f.compute_capability
HAVING MIN(f.time) >= CAST(:since AS TIMESTAMP)
ORDER BY processes DESC NULLS LAST, f.cause NULLS LAST, f.path NULLS LAST, f.compute_capability NULLS LAST
