-- Families (links.ts). families: the number of links of each parent, by their status. links: one row for each child of a parent. `status`
-- has the numbers of LINK_STATES; `text`: the result of the child, or the reason of its failure. Columns of the key follow in each index.
CREATE TABLE IF NOT EXISTS families (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  pending INTEGER NOT NULL,
  processed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  ignored INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS links (
  queue INTEGER NOT NULL,
  parent TEXT NOT NULL,
  childQueue TEXT NOT NULL,
  child TEXT NOT NULL,
  status INTEGER NOT NULL,
  text TEXT,
  PRIMARY KEY (queue, parent, childQueue, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS linksOpen ON links (queue, parent, status) WHERE status <> 1;
