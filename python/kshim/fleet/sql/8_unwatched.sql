-- SPDX-License-Identifier: Apache-2.0
-- Which programs have processes whose reports prove little: blind, incomplete, or failed for no known reason?
SELECT p.exe,
       SUM(p.sample) AS processes,
       SUM(CASE WHEN p.verdict = 'blind' THEN p.sample ELSE 0 END) AS blind,
       SUM(CASE WHEN p.verdict = 'incomplete' THEN p.sample ELSE 0 END) AS incomplete,
       SUM(CASE WHEN u.process_id IS NOT NULL THEN p.sample ELSE 0 END) AS unknown,
       SUM(p.dropped) AS lost_records
FROM processes p
LEFT JOIN (SELECT DISTINCT process_id FROM findings WHERE cause = 'unknown') u ON u.process_id = p.row_id
WHERE p.verdict IN ('blind', 'incomplete') OR p.dropped > 0 OR u.process_id IS NOT NULL
GROUP BY p.exe
ORDER BY processes DESC NULLS LAST, p.exe NULLS LAST
