-- Values of `new-columns` but for the key.
:queue, :id, :state, :priority, :ord, :dueAt, :delay, :now, :timestamp, :name, :opts, :data
