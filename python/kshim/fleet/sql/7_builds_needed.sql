-- SPDX-License-Identifier: Apache-2.0
-- Which architectures must each file be built for to serve the GPUs of the fleet?
SELECT l.path, l.package, l.version, d.compute_capability,
       COUNT(DISTINCT l.process_id) AS processes
FROM loads l
JOIN serves s ON s.file_id = l.file_id AND s.how <> 'sass'
JOIN (SELECT DISTINCT compute_capability FROM devices) d ON d.compute_capability = s.compute_capability
GROUP BY l.path, l.package, l.version, d.compute_capability
ORDER BY processes DESC NULLS LAST, l.path NULLS LAST, d.compute_capability NULLS LAST
