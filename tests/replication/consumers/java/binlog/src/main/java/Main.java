import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.GtidEventData;
import com.github.shyiko.mysql.binlog.event.QueryEventData;
import com.github.shyiko.mysql.binlog.event.TableMapEventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.github.shyiko.mysql.binlog.event.deserialization.json.JsonBinary;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Reads the whole binary log with mysql-binlog-connector-java, by file and by identifiers, and compares the rows that its changes lead to with a SELECT.
 *
 * Environment: PORT. Prints the differences; the exit code tells whether there are any.
 */
public class Main {
    static final String SCHEMA = "read_by_others";
    /** 1583, in microseconds. */
    static final long OLD_CALENDAR = -12_212_553_600_000_000L;
    static final Logger READER = Logger.getLogger("com.github.shyiko");
    static int faults;
    final Map<Long, TableMapEventData> maps = new TreeMap<>();
    final Map<String, Map<Object, Serializable[]>> tables = new TreeMap<>();
    int transactions;

    static void fault(String text) {
        faults++;
        System.out.println(text);
    }

    public static void main(String[] arguments) throws Exception {
        // It says each connection.
        READER.setLevel(Level.WARNING);
        int port = Integer.parseInt(System.getenv("PORT"));
        String url = "jdbc:mysql://127.0.0.1:" + port + "/" + SCHEMA + "?user=root&allowPublicKeyRetrieval=true&sslMode=DISABLED&sessionVariables=time_zone='%2B00:00'";
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            String first = value(statement, "SHOW BINARY LOGS");
            String mark = "mark" + System.nanoTime();
            statement.execute("CREATE TABLE " + mark + " (id INT PRIMARY KEY)");
            for (String kind : List.of("file", "gtid")) {
                Main reader = new Main();
                BinaryLogClient client = new BinaryLogClient("127.0.0.1", port, SCHEMA, "root", "");
                client.setServerId(81);
                EventDeserializer deserializer = new EventDeserializer();
                deserializer.setCompatibilityMode(EventDeserializer.CompatibilityMode.DATE_AND_TIME_AS_LONG_MICRO, EventDeserializer.CompatibilityMode.CHAR_AND_BINARY_AS_BYTE_ARRAY);
                client.setEventDeserializer(deserializer);
                if (kind.equals("file")) {
                    client.setBinlogFilename(first);
                    client.setBinlogPosition(4);
                } else {
                    client.setGtidSet("");
                }
                CountDownLatch end = new CountDownLatch(1);
                String last = mark;
                client.registerEventListener(event -> {
                    if (reader.take(event, last)) {
                        end.countDown();
                    }
                });
                client.registerLifecycleListener(new BinaryLogClient.AbstractLifecycleListener() {
                    @Override
                    public void onEventDeserializationFailure(BinaryLogClient source, Exception error) {
                        fault("it cannot read an event: " + error + " " + error.getCause());
                    }

                    @Override
                    public void onCommunicationFailure(BinaryLogClient source, Exception error) {
                        fault("the connection broke: " + error + " " + error.getCause());
                    }
                });
                client.connect(10_000);
                if (!end.await(20, TimeUnit.SECONDS)) {
                    fault(kind + ": the end of the log did not come");
                }
                client.disconnect();
                int rows = reader.compare(connection, kind);
                System.out.println("mysql-binlog-connector-java by " + kind + ": " + reader.transactions + " transactions, " + rows + " rows");
            }
            statement.execute("DROP TABLE " + mark);
        }
        System.exit(faults > 0 ? 1 : 0);
    }

    static String value(Statement statement, String sql) throws Exception {
        try (ResultSet result = statement.executeQuery(sql)) {
            result.next();
            return result.getString(1);
        }
    }

    /** Takes an event; whether it is the last of interest. */
    boolean take(Event event, String mark) {
        if (event.getData() instanceof GtidEventData) {
            transactions++;
        } else if (event.getData() instanceof QueryEventData query) {
            if (query.getSql().startsWith("TRUNCATE")) {
                tables.remove("copied");
            }
            return query.getSql().contains("CREATE TABLE " + mark);
        } else if (event.getData() instanceof TableMapEventData map) {
            maps.put(map.getTableId(), map);
        } else if (event.getData() instanceof WriteRowsEventData write) {
            write.getRows().forEach(row -> rows(write.getTableId()).put(row[0], row));
        } else if (event.getData() instanceof DeleteRowsEventData delete) {
            delete.getRows().forEach(row -> rows(delete.getTableId()).remove(row[0]));
        } else if (event.getData() instanceof UpdateRowsEventData update) {
            for (Map.Entry<Serializable[], Serializable[]> row : update.getRows()) {
                rows(update.getTableId()).remove(row.getKey()[0]);
                rows(update.getTableId()).put(row.getValue()[0], row.getValue());
            }
        }
        return false;
    }

    Map<Object, Serializable[]> rows(long table) {
        TableMapEventData map = maps.get(table);
        String name = map.getDatabase().equals(SCHEMA) ? map.getTable() : "of another schema";
        return tables.computeIfAbsent(name, ignored -> new TreeMap<>());
    }

    int compare(Connection connection, String kind) throws Exception {
        List<String[]> columns = new ArrayList<>();
        try (Statement statement = connection.createStatement();
             ResultSet result = statement.executeQuery("SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '" + SCHEMA
                     + "' ORDER BY TABLE_NAME, ORDINAL_POSITION")) {
            while (result.next()) {
                columns.add(new String[] {result.getString(1), result.getString(2), result.getString(3), result.getString(4)});
            }
        }
        int count = 0;
        for (String table : columns.stream().map(column -> column[0]).distinct().toList()) {
            List<String[]> own = columns.stream().filter(column -> column[0].equals(table)).toList();
            Map<Object, Serializable[]> found = tables.getOrDefault(table, Map.of());
            String list = String.join(", ", own.stream().map(Main::expression).toList());
            int stored = 0;
            try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery("SELECT " + list + " FROM " + table)) {
                while (result.next()) {
                    stored++;
                    Serializable[] row = found.get(result.getInt(1));
                    for (int at = 0; row != null && at < Math.min(row.length, own.size()); at++) {
                        String wanted = result.getString(at + 1);
                        if (!alike(connection, own.get(at), row[at], wanted)) {
                            fault(kind + " " + table + " " + row[0] + " " + own.get(at)[1] + ": the log has " + shown(row[at]) + ", the table " + wanted);
                        }
                    }
                    if (row == null) {
                        fault(kind + " " + table + ": the log has no row " + result.getString(1));
                    }
                }
            }
            if (stored != found.size()) {
                fault(kind + " " + table + ": the log leads to " + found.size() + " rows, the table has " + stored);
            }
            count += stored;
        }
        return count;
    }

    /** What of a column is comparable with what the reader makes of it. */
    static String expression(String[] column) {
        String name = "`" + column[1] + "`";
        return switch (column[2]) {
            case "bit", "year", "enum", "set" -> "CAST(" + name + " + 0 AS UNSIGNED)";
            case "date", "datetime", "timestamp" -> "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + name + ")";
            case "time" -> "CAST(" + name + " AS CHAR)";
            case "json" -> "CAST(" + name + " AS CHAR)";
            case "float", "double", "decimal" -> name;
            default -> column[2].matches("(tiny|small|medium|big|)int") ? name : "HEX(" + name + ")";
        };
    }

    static boolean alike(Connection connection, String[] column, Serializable found, String wanted) throws Exception {
        if (found == null || wanted == null) {
            return found == null && wanted == null;
        }
        return switch (column[2]) {
            case "bit" -> new BigInteger(wanted).equals(number((BitSet) found));
            case "year", "enum", "set" -> found.toString().equals(wanted);
            case "date", "datetime", "timestamp" -> Long.parseLong(wanted) < OLD_CALENDAR || found.toString().equals(wanted);
            // The reader gets times below zero and days of the old calendar wrong, with MySQL's log too.
            case "time" -> wanted.startsWith("-") || found.equals(micros(wanted));
            case "json" -> document(connection, JsonBinary.parseAsString((byte[]) found), wanted);
            case "float" -> Math.abs((Float) found - Float.parseFloat(wanted)) <= Math.abs((Float) found) * 1e-5;
            case "double" -> (Double) found == Double.parseDouble(wanted);
            case "decimal" -> ((BigDecimal) found).compareTo(new BigDecimal(wanted)) == 0;
            default -> {
                if (column[2].matches("(tiny|small|medium|big|)int")) {
                    // The reader shows them signed.
                    int bits = switch (column[2]) { case "tinyint" -> 8; case "smallint" -> 16; case "mediumint" -> 24; case "int" -> 32; default -> 64; };
                    BigInteger read = new BigInteger(found.toString());
                    boolean unsigned = column[3].contains("unsigned") && read.signum() < 0;
                    yield new BigInteger(wanted).equals(unsigned ? read.add(BigInteger.ONE.shiftLeft(bits)) : read);
                }
                String digits = HexFormat.of().withUpperCase().formatHex((byte[]) found);
                // Zeros at the end of BINARY are not in the log.
                yield digits.equals(wanted) || column[2].equals("binary") && wanted.startsWith(digits) && wanted.substring(digits.length()).matches("0*");
            }
        };
    }

    static BigInteger number(BitSet bits) {
        long[] words = bits.toLongArray();
        return words.length == 0 ? BigInteger.ZERO : new BigInteger(Long.toUnsignedString(words[0]));
    }

    static long micros(String time) {
        boolean negative = time.startsWith("-");
        String[] parts = (negative ? time.substring(1) : time).split(":");
        long value = (Long.parseLong(parts[0]) * 3600 + Long.parseLong(parts[1]) * 60) * 1_000_000 + new BigDecimal(parts[2]).movePointRight(6).longValueExact();
        return negative ? -value : value;
    }

    /** The server compares documents. */
    static boolean document(Connection connection, String found, String wanted) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("SELECT CAST(? AS JSON) = CAST(? AS JSON)")) {
            statement.setString(1, found);
            statement.setString(2, wanted);
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                return result.getBoolean(1);
            }
        }
    }

    static String shown(Serializable value) {
        String text = value instanceof byte[] octets ? HexFormat.of().formatHex(octets) : String.valueOf(value);
        return text.substring(0, Math.min(text.length(), 80));
    }
}
