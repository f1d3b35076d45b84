-- Tables of the analytic part of the load that a release is trained with (`cargo xtask release`).
SET SESSION cte_max_recursion_depth = 1000000;
CREATE TABLE customers (
  id INT PRIMARY KEY,
  name VARCHAR(40) NOT NULL,
  country CHAR(2) NOT NULL,
  joined DATE NOT NULL,
  notes JSON,
  KEY by_country (country)
);
CREATE TABLE orders (
  id INT PRIMARY KEY AUTO_INCREMENT,
  customer INT NOT NULL,
  placed DATETIME NOT NULL,
  status ENUM('new', 'paid', 'sent', 'back') NOT NULL,
  total DECIMAL(12,2) NOT NULL,
  weight DOUBLE,
  comment VARCHAR(100),
  KEY by_customer (customer, placed),
  KEY by_placed (placed)
);
INSERT INTO customers
  WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  SELECT i, CONCAT('Customer ', LPAD(i * 7919 % 20000, 6, '0')), ELT(1 + i % 7, 'DE', 'FR', 'IT', 'ES', 'SE', 'PL', 'AT'),
    DATE '2015-01-01' + INTERVAL i % 3000 DAY, JSON_OBJECT('level', i % 5, 'tags', JSON_ARRAY(i % 11, 'x'), 'mail', CONCAT('c', i, '@example.org'))
  FROM n;
INSERT INTO orders (customer, placed, status, total, weight, comment)
  WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
  SELECT 1 + i * 7919 % 20000, TIMESTAMP '2020-01-01 00:00:00' + INTERVAL i * 13 MINUTE, 1 + i * 31 % 4, i * 17 % 99991 / 100,
    IF(i % 9 = 0, NULL, i % 1000 / 7), IF(i % 5 = 0, NULL, CONCAT('order of lot ', i * 37 % 1013))
  FROM n;
ANALYZE TABLE customers, orders;
