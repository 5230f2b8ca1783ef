-- SPDX-License-Identifier: Apache-2.0
-- Whose runs used libraries that have no code for a GPU? XALT's tables, joined to a nightly scan. MariaDB, MySQL, PostgreSQL.
-- kshim_serves has one row a file and GPU:
--   kshim scan --format json -o scan.json /sw ; python -m kshim.fleet ingest scan.json lake
--   python -m kshim.fleet sql lake --format csv "SELECT DISTINCT i.path, s.compute_capability, s.how FROM images i JOIN serves s ON s.file_id = i.file_id"
CREATE TABLE IF NOT EXISTS kshim_serves (
  path varchar(1024) NOT NULL,
  compute_capability varchar(8) NOT NULL,
  how varchar(4) NOT NULL
);

SELECT u.who, u.account, u.path,
       COUNT(DISTINCT u.run_id) AS runs,
       COUNT(DISTINCT u.job_id) AS jobs,
       MAX(u.last_run) AS last_run
FROM (SELECT r.user AS who, r.account, o.object_path AS path, r.run_id, r.job_id, r.date AS last_run
      FROM xalt_run r
      JOIN join_run_object j ON j.run_id = r.run_id
      JOIN xalt_object o ON o.obj_id = j.obj_id
      UNION
      SELECT r.user, r.account, r.exec_path, r.run_id, r.job_id, r.date
      FROM xalt_run r) u
JOIN kshim_serves k ON k.path = u.path AND k.compute_capability = '10.0' AND k.how = 'none'
GROUP BY u.who, u.account, u.path
ORDER BY runs DESC, u.who, u.path;
