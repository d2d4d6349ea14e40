-- Records a step of a row.
INSERT INTO steps (job, number, name, value, total) VALUES (:job, :number, :name, :value, :total)
