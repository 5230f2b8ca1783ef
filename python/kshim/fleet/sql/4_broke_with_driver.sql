-- SPDX-License-Identifier: Apache-2.0
-- Which programs fail with one driver and not with another?
-- :before text default 12.8: CUDA version of the driver before
-- :after text default 13.0: CUDA version of the driver after
SELECT p.exe,
       SUM(CASE WHEN p.driver = :before THEN p.sample ELSE 0 END) AS processes_before,
       SUM(CASE WHEN p.driver = :before AND p.failures > 0 THEN p.sample ELSE 0 END) AS failed_before,
       SUM(CASE WHEN p.driver = :after THEN p.sample ELSE 0 END) AS processes_after,
       SUM(CASE WHEN p.driver = :after AND p.failures > 0 THEN p.sample ELSE 0 END) AS failed_after
FROM processes p
WHERE p.driver IN (:before, :after)
GROUP BY p.exe
HAVING SUM(CASE WHEN p.driver = :after AND p.failures > 0 THEN 1 ELSE 0 END) > 0
   AND SUM(CASE WHEN p.driver = :before THEN 1 ELSE 0 END) > 0
   AND SUM(CASE WHEN p.driver = :before AND p.failures > 0 THEN 1 ELSE 0 END) = 0
ORDER BY failed_after DESC NULLS LAST, p.exe NULLS LAST
