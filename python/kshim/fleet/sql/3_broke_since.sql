-- SPDX-License-Identifier: Apache-2.0
-- What fails since a date that did not fail before?
-- :since text default 2026-01-01: first day of the new state
SELECT f.cause, f.package, f.version, f.path, f.compute_capability,
       COUNT(DISTINCT f.process_id) AS processes,
       MIN(f.time) AS first_seen
FROM findings f
WHERE f.severity = 'error' AND NOT f.hypothetical
GROUP BY f.cause, f.package, f.version, f.path, f.compute_capability
HAVING MIN(f.time) >= CAST(:since AS TIMESTAMP)
ORDER BY processes DESC NULLS LAST, f.cause NULLS LAST, f.path NULLS LAST
