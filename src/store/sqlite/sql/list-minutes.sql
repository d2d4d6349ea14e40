-- Lists minutes in which a job finished.
SELECT minute, count FROM metrics WHERE queue = :queue AND kind = :kind AND minute BETWEEN :first AND :last
