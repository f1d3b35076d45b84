import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Debezium's MySQL connector in its embedded engine: a snapshot, then changes as they come, then, after a stop, from the stored offset on. The rows that its events
 * lead to are compared with a SELECT each time.
 *
 * Environment: PORT, LOAD (the file with the statements of the load). Prints the differences; the exit code tells whether there are any.
 */
public class Main {
    static final String SCHEMA = "read_by_others";
    static final ObjectMapper JSON = new ObjectMapper();
    static final Logger READER = Logger.getLogger(com.github.shyiko.mysql.binlog.BinaryLogClient.class.getName());
    static int faults;
    final Map<String, Map<Integer, JsonNode>> tables = new TreeMap<>();
    final Map<String, Integer> kinds = new TreeMap<>();
    String mark = "";
    String failure;

    static void fault(String text) {
        faults++;
        System.out.println(text);
    }

    public static void main(String[] arguments) throws Exception {
        // Its reader says each connection.
        READER.setLevel(Level.WARNING);
        String port = System.getenv("PORT");
        String load = Files.readString(Path.of(System.getenv("LOAD")));
        Path folder = Files.createTempDirectory("debezium");
        String url = "jdbc:mysql://127.0.0.1:" + port + "/?user=root&allowMultiQueries=true&allowPublicKeyRetrieval=true&sslMode=DISABLED&characterEncoding=UTF-8";
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            statement.execute("DROP DATABASE IF EXISTS " + SCHEMA);
            statement.execute(load);
            statement.execute("SET time_zone = '+00:00'");
            Main reader = new Main();
            reader.run(properties(port, folder), statement, "snapshot", "");
            reader.tables.clear();
            reader.run(properties(port, folder), statement, "changes as they come", "DROP DATABASE " + SCHEMA + ";" + load);
            // What happens while nobody reads comes from the log.
            statement.execute("USE " + SCHEMA);
            statement.execute("UPDATE numbers SET i = 77 WHERE id = 1; DELETE FROM texts WHERE id = 2; ALTER TABLE times ADD COLUMN more INT DEFAULT 4; INSERT INTO times (id, more) VALUES (50, 5)");
            reader.run(properties(port, folder), statement, "after a stop", "USE " + SCHEMA + "; UPDATE documents SET j = '{\"after\": true}' WHERE id = 2");
            statement.execute("DROP TABLE mark");
        } finally {
            try (var files = Files.list(folder)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(folder);
        }
        System.exit(faults > 0 ? 1 : 0);
    }

    static Properties properties(String port, Path folder) {
        Properties properties = new Properties();
        String[][] all = {
            {"name", "reader"}, {"connector.class", "io.debezium.connector.mysql.MySqlConnector"}, {"topic.prefix", "t"}, {"database.hostname", "127.0.0.1"}, {"database.port", port},
            {"database.user", "root"}, {"database.password", ""}, {"database.server.id", "91"}, {"database.include.list", SCHEMA}, {"database.ssl.mode", "disabled"},
            {"offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"}, {"offset.storage.file.filename", folder.resolve("offsets").toString()}, {"offset.flush.interval.ms", "100"},
            {"schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"}, {"schema.history.internal.file.filename", folder.resolve("history").toString()},
            {"schema.history.internal.store.only.captured.databases.ddl", "true"}, {"include.schema.changes", "false"}, {"skipped.operations", "none"}, {"decimal.handling.mode", "string"}, {"bigint.unsigned.handling.mode", "long"}, {"binary.handling.mode", "hex"},
            {"key.converter.schemas.enable", "false"}, {"value.converter.schemas.enable", "false"}, {"connect.timeout.ms", "10000"}, {"tombstones.on.delete", "false"},
            // Days before the calendar's change are what they are.
            {"enable.time.adjuster", "false"}, {"poll.interval.ms", "50"},
        };
        for (String[] one : all) {
            properties.setProperty(one[0], one[1]);
        }
        return properties;
    }

    /** Runs the engine until a row that is written last has come. */
    void run(Properties properties, Statement statement, String what, String changes) throws Exception {
        kinds.clear();
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class).using(properties).using((success, message, error) -> {
            if (!success) {
                failure = message + " " + error;
            }
        }).notifying(this::take).build();
        ExecutorService executor = Executors.newSingleThreadExecutor();
        String wanted = what;
        String last = "CREATE TABLE IF NOT EXISTS " + SCHEMA + ".mark (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(50)); INSERT INTO " + SCHEMA + ".mark (what) VALUES ('" + wanted + "')";
        if (changes.isEmpty()) {
            statement.execute(last);
            executor.execute(engine);
        } else {
            executor.execute(engine);
            statement.execute(changes);
            statement.execute(last);
        }
        for (long end = System.currentTimeMillis() + 60_000; !seen(wanted) && failure == null && System.currentTimeMillis() < end;) {
            Thread.sleep(50);
        }
        if (!seen(wanted)) {
            System.out.println("Debezium, " + what + ": the last row did not come; " + failure);
            System.exit(1);
        }
        engine.close();
        executor.shutdown();
        executor.awaitTermination(20, TimeUnit.SECONDS);
        System.out.println("Debezium, " + what + ": " + compare(statement, what) + " rows, events " + kinds);
    }

    synchronized boolean seen(String wanted) {
        return mark.equals(wanted);
    }

    synchronized void take(ChangeEvent<String, String> event) {
        try {
            if (event.value() == null) {
                return;
            }
            JsonNode value = JSON.readTree(event.value());
            JsonNode source = value.path("source");
            if (!source.path("db").asText().equals(SCHEMA)) {
                return;
            }
            String table = source.path("table").asText();
            String kind = value.path("op").asText();
            kinds.merge(kind, 1, Integer::sum);
            Map<Integer, JsonNode> rows = tables.computeIfAbsent(table, name -> new TreeMap<>());
            switch (kind) {
                case "r", "c", "u" -> {
                    JsonNode before = value.path("before");
                    if (before.has("id")) {
                        rows.remove(before.get("id").asInt());
                    }
                    rows.put(value.path("after").get("id").asInt(), value.path("after"));
                }
                case "d" -> rows.remove(value.path("before").get("id").asInt());
                case "t" -> rows.clear();
                default -> fault("an event of kind " + kind + ": " + event.value());
            }
            // A snapshot reads the tables in an order of its own.
            if (!kind.equals("r") && table.equals("mark")) {
                mark = value.path("after").path("what").asText();
            } else if (source.path("snapshot").asText().equals("last")) {
                mark = "snapshot";
            }
        } catch (Exception fault) {
            failure = String.valueOf(fault);
        }
    }

    synchronized int compare(Statement statement, String what) throws Exception {
        List<String[]> columns = new ArrayList<>();
        try (ResultSet result = statement.executeQuery("SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, DATETIME_PRECISION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '" + SCHEMA
                + "' ORDER BY TABLE_NAME, ORDINAL_POSITION")) {
            while (result.next()) {
                columns.add(new String[] {result.getString(1), result.getString(2), result.getString(3), result.getString(4), result.getString(5)});
            }
        }
        int count = 0;
        for (String table : columns.stream().map(column -> column[0]).distinct().toList()) {
            List<String[]> own = columns.stream().filter(column -> column[0].equals(table)).toList();
            Map<Integer, JsonNode> found = tables.getOrDefault(table, Map.of());
            int stored = 0;
            try (ResultSet result = statement.executeQuery("SELECT " + String.join(", ", own.stream().map(Main::expression).toList()) + " FROM " + SCHEMA + "." + table)) {
                while (result.next()) {
                    stored++;
                    JsonNode row = found.get(result.getInt(1));
                    if (row == null) {
                        fault(what + " " + table + ": no event has row " + result.getString(1));
                        continue;
                    }
                    for (int at = 0; at < own.size(); at++) {
                        String wanted = result.getString(at + 1);
                        JsonNode value = row.get(own.get(at)[1]);
                        // A column that came later is not in earlier events.
                        if (value != null && !alike(own.get(at), value, wanted)) {
                            fault(what + " " + table + " " + result.getString(1) + " " + own.get(at)[1] + ": the event has " + shown(value.toString()) + ", the table " + shown(wanted));
                        }
                    }
                }
            }
            if (stored != found.size()) {
                fault(what + " " + table + ": the events lead to rows " + found.keySet() + ", the table has " + stored);
            }
            count += stored;
        }
        return count;
    }

    static String expression(String[] column) {
        String name = "`" + column[1] + "`";
        return switch (column[2]) {
            case "bit", "year" -> "CAST(" + name + " + 0 AS UNSIGNED)";
            case "date" -> "DATEDIFF(" + name + ", '1970-01-01')";
            case "datetime", "timestamp" -> "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + name + ")";
            case "time", "json" -> "CAST(" + name + " AS CHAR)";
            case "geometry", "point" -> "HEX(ST_AsWKB(" + name + "))";
            case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob" -> "HEX(" + name + ")";
            default -> name;
        };
    }

    static boolean alike(String[] column, JsonNode found, String wanted) throws Exception {
        if (found.isNull() || wanted == null) {
            return found.isNull() && wanted == null;
        }
        return switch (column[2]) {
            case "bit" -> wanted.equals(found.isBoolean() ? found.asBoolean() ? "1" : "0" : bits(found.asText()).toString());
            case "datetime" -> wanted.equals(Integer.parseInt(column[4]) <= 3 ? found.asText() + "000" : found.asText());
            case "timestamp" -> wanted.equals(String.valueOf(ChronoUnit.MICROS.between(Instant.EPOCH, OffsetDateTime.parse(found.asText()).toInstant())));
            case "time" -> found.asLong() == micros(wanted);
            case "json" -> JSON.readTree(found.asText()).equals(JSON.readTree(wanted));
            case "geometry", "point" -> HexFormat.of().withUpperCase().formatHex(Base64.getDecoder().decode(found.path("wkb").asText())).equals(wanted);
            case "float" -> Math.abs(found.asDouble() - Double.parseDouble(wanted)) <= Math.abs(found.asDouble()) * 1e-5;
            case "double" -> found.asDouble() == Double.parseDouble(wanted);
            case "decimal" -> new BigDecimal(found.asText()).compareTo(new BigDecimal(wanted)) == 0;
            case "bigint" -> found.asText().equals(new BigInteger(wanted).longValue() + "");
            case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob" -> found.asText().equalsIgnoreCase(wanted);
            // It marks commas.
            case "enum" -> found.asText().replace("\\,", ",").equals(wanted);
            case "tinyint" -> (found.isBoolean() ? found.asBoolean() ? "1" : "0" : found.asText()).equals(wanted);
            default -> found.asText().equals(wanted);
        };
    }

    /** The lowest byte is the first. */
    static BigInteger bits(String text) {
        byte[] octets = Base64.getDecoder().decode(text.getBytes(StandardCharsets.ISO_8859_1));
        byte[] turned = new byte[octets.length];
        for (int at = 0; at < octets.length; at++) {
            turned[octets.length - 1 - at] = octets[at];
        }
        return new BigInteger(1, turned);
    }

    static long micros(String time) {
        boolean negative = time.startsWith("-");
        String[] parts = (negative ? time.substring(1) : time).split(":");
        Duration whole = Duration.ofHours(Long.parseLong(parts[0])).plusMinutes(Long.parseLong(parts[1]));
        long value = whole.toSeconds() * 1_000_000 + new BigDecimal(parts[2]).movePointRight(6).longValueExact();
        return negative ? -value : value;
    }

    static String shown(String text) {
        return text == null || text.length() <= 80 ? text : text.substring(0, 80);
    }
}
