-- SELECT 1, prepared once a thread (or as text with --db-ps-mode=disable).
sysbench.cmdline.options = {
    tables = {"unused", 1},
    table_size = {"unused", 1},
}

function thread_init()
    connection = sysbench.sql.driver():connect()
    statement = connection:prepare("SELECT 1")
end

function event()
    statement:execute()
end

function thread_done()
    statement:close()
    connection:disconnect()
end
