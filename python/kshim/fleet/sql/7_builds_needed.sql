-- SPDX-License-Identifier: Apache-2.0
-- What is the smallest set of architectures that each file must be built for besides, so that all GPUs of the fleet run its machine code?
-- `plan`: the whole list, as CMAKE_CUDA_ARCHITECTURES, where a scan or an analysis with --target was ingested.
SELECT l.path, l.package, l.version,
       MIN_BY(s.compute_capability, CAST(s.compute_capability AS DOUBLE)) AS build_for,
       COUNT(DISTINCT s.compute_capability) AS kinds_of_gpu,
       MAX(CASE WHEN s.how = 'none' THEN 1 ELSE 0 END) AS breaks_today,
       MAX(u.processes) AS processes,
       MAX(n.cmake) AS plan
FROM (SELECT DISTINCT file_id, path, package, version FROM loads) l
JOIN (SELECT d.file_id, SUM(p.sample) AS processes
      FROM (SELECT DISTINCT process_id, file_id FROM loads) d
      JOIN processes p ON p.row_id = d.process_id
      GROUP BY d.file_id) u ON u.file_id = l.file_id
JOIN serves s ON s.file_id = l.file_id AND s.how <> 'sass'
JOIN (SELECT DISTINCT compute_capability FROM devices) g ON g.compute_capability = s.compute_capability
LEFT JOIN plans n ON n.file_id = l.file_id
GROUP BY l.path, l.package, l.version, s.family
ORDER BY processes DESC NULLS LAST, l.path NULLS LAST, build_for NULLS LAST
