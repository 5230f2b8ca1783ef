-- SPDX-License-Identifier: Apache-2.0
-- Which programs have reports that prove little?
SELECT p.exe, p.verdict,
       COUNT(*) AS processes,
       SUM(p.dropped) AS lost_records
FROM processes p
WHERE p.verdict IN ('blind', 'incomplete') OR p.dropped > 0
GROUP BY p.exe, p.verdict
ORDER BY processes DESC NULLS LAST, p.exe NULLS LAST
