-- Values of `new-columns` but for the key.
:queue, :id, :state, :ord, :dueAt, :now,
:priority, :delay, :timestamp, :name, :opts, :data
