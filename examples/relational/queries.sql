-- Orders and revenue by day and status.
SELECT (created AT TIME ZONE 'UTC')::date AS day, status, count(*) AS orders, sum(total) AS revenue FROM orders_live GROUP BY 1, 2 ORDER BY 1, 2;
-- Products by pieces sold, without cancelled orders.
SELECT l.sku, sum(l.pieces) AS pieces, count(DISTINCT l.order_id) AS orders
FROM order_lines l JOIN orders_live o ON o."PK" = l.customer AND o."SK" = l.number WHERE o.status <> 'CANCELLED' GROUP BY 1 ORDER BY 2 DESC, 1;
-- Customers by what they spent, with those who bought nothing.
SELECT c.name, coalesce(sum(o.total), 0) AS spent FROM customers_live c LEFT JOIN orders_live o ON o."PK" = c."PK" AND o.status <> 'CANCELLED'
GROUP BY c."PK", c.name ORDER BY 2 DESC, 1;
