import java.io.File;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What every client must be able to do, through Connector/J; a line for each point. */
public class Main {
    static final String URL = "jdbc:mysql://127.0.0.1:" + System.getenv("PORT") + "/";
    static final String TLS = "sslMode=REQUIRED";
    static final String VERIFIED = "sslMode=VERIFY_IDENTITY&trustCertificateKeyStoreType=PKCS12&trustCertificateKeyStorePassword=squall&trustCertificateKeyStoreUrl=";
    static final String PLAIN = "sslMode=DISABLED&allowPublicKeyRetrieval=";
    static final String USERS = "java_sha2, java_native, java_strict";
    static String trusted;
    static List<String[]> columns;

    static Connection open(String user, String password, String rest) throws SQLException {
        return DriverManager.getConnection(URL + rest, user, password);
    }

    static Connection open(String rest) throws SQLException {
        return open("root", System.getenv("PASSWORD"), rest);
    }

    static void check(boolean truth, Object... what) {
        if (!truth) throw new AssertionError(Arrays.deepToString(what));
    }

    static void point(String name) {
        System.out.println("  Connector/J: " + name);
    }

    static void skip(String name, String reason) {
        System.out.println("  Connector/J: SKIPPED " + name + ": " + reason);
    }

    static String one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            check(r.next(), "no row", sql);
            return r.getString(1);
        }
    }

    static void run(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) {
            for (String sql : statements) s.execute(sql);
        }
    }

    /** Number of the error that logging in ends with: 0 for none, -1 for one of the driver. */
    static int login(String user, String password, String rest) {
        try (Connection c = open(user, password, rest)) {
            check(one(c, "SELECT CURRENT_USER()").startsWith(user + "@"), user);
            return 0;
        } catch (SQLException e) {
            return e.getErrorCode() == 0 ? -1 : e.getErrorCode();
        }
    }

    static void equal(int read, int expected, String what) {
        check(read == expected, what, read);
    }

    static void authentication(Connection admin) throws SQLException {
        run(admin, "DROP USER IF EXISTS " + USERS,
                "CREATE USER java_sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'");
        equal(login("java_sha2", "secret", "?" + PLAIN + "false"), -1, "a password travelled in the clear");
        equal(login("java_sha2", "secret", "?" + trusted), 0, "full over TLS");
        equal(login("java_sha2", "secret", "?" + PLAIN + "false"), 0, "fast");
        equal(login("java_sha2", "wrong", "?" + trusted), 1045, "wrong");
        point("caching sha2 password full and fast");
        run(admin, "ALTER USER java_sha2 IDENTIFIED BY 'other secret'");
        equal(login("java_sha2", "other secret", "?" + PLAIN + "true"), 0, "public key");
        equal(login("java_sha2", "wrong", "?" + PLAIN + "true"), 1045, "wrong with public key");
        point("caching sha2 password with the servers public key");
        run(admin, "CREATE USER java_native IDENTIFIED WITH mysql_native_password BY 'secret'");
        for (String rest : new String[] {"?" + PLAIN + "false", "?" + trusted}) {
            equal(login("java_native", "secret", rest), 0, "native");
            equal(login("java_native", "wrong", rest), 1045, "native wrong");
        }
        point("mysql native password");
        skip("auth socket", "the driver has no UNIX sockets");
        run(admin, "CREATE USER java_strict IDENTIFIED BY 'secret' REQUIRE SSL");
        equal(login("java_strict", "secret", "?" + TLS), 0, "TLS required");
        equal(login("java_strict", "secret", "?" + PLAIN + "true"), 1045, "TLS required and not given");
        equal(login("root", System.getenv("PASSWORD"), "?sslMode=VERIFY_CA"), -1, "an unknown authority was trusted");
        point("tls required and verified");
        run(admin, "DROP USER " + USERS);
    }

    static boolean binary(String kind) {
        return kind.startsWith("BIT") || kind.contains("BLOB") || kind.contains("BINARY");
    }

    static String canonical(ResultSet r, int at, String kind) throws SQLException {
        if (binary(kind)) {
            byte[] bytes = r.getBytes(at);
            return bytes == null ? null : "0x" + HexFormat.of().formatHex(bytes);
        }
        if (kind.equals("DOUBLE") || kind.equals("FLOAT")) {
            double number = r.getDouble(at);
            return r.wasNull() ? null : Double.toString(number).replace("E", "e").replace("e+", "e");
        }
        return r.getString(at);
    }

    static void everyColumnType(Connection c, String how) throws SQLException {
        String body = IntStream.range(0, columns.size()).mapToObj(i -> ", c" + i + " " + columns.get(i)[0] + " NULL").collect(Collectors.joining());
        String names = IntStream.range(0, columns.size()).mapToObj(i -> "c" + i).collect(Collectors.joining(", "));
        String marks = String.join(", ", java.util.Collections.nCopies(columns.size(), "?"));
        run(c, "DROP TABLE IF EXISTS every_type, large", "CREATE TABLE every_type (id INT PRIMARY KEY AUTO_INCREMENT" + body + ")");
        try (PreparedStatement p = c.prepareStatement("INSERT INTO every_type (" + names + ") VALUES (" + marks + ")", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < columns.size(); i++) {
                String text = columns.get(i)[1];
                if (text.startsWith("0x")) p.setBytes(i + 1, HexFormat.of().parseHex(text.substring(2)));
                else if (columns.get(i)[0].equals("BIGINT UNSIGNED")) p.setBigDecimal(i + 1, new BigDecimal(text));
                else p.setString(i + 1, text);
            }
            equal(p.executeUpdate(), 1, "affected rows");
            try (ResultSet keys = p.getGeneratedKeys()) {
                check(keys.next() && keys.getLong(1) == 1, "generated key");
            }
            for (int i = 0; i < columns.size(); i++) p.setNull(i + 1, Types.VARCHAR);
            equal(p.executeUpdate(), 1, "affected rows");
        }
        try (PreparedStatement p = c.prepareStatement("SELECT " + names + " FROM every_type WHERE id > ? ORDER BY id")) {
            p.setInt(1, 0);
            try (ResultSet r = p.executeQuery()) {
                check(r.next(), "a row");
                for (int i = 0; i < columns.size(); i++) {
                    String kind = columns.get(i)[0];
                    // The driver adds the days of a negative TIME in the binary protocol, from every server.
                    if (kind.equals("TIME") && how.startsWith("binary")) continue;
                    String read = canonical(r, i + 1, kind);
                    check(columns.get(i)[1].equals(read), how, columns.get(i), read);
                    if (kind.equals("BIGINT UNSIGNED")) check(r.getObject(i + 1).equals(new BigInteger(columns.get(i)[1])), "BigInteger");
                }
                check(r.next(), "a row of NULLs");
                for (int i = 0; i < columns.size(); i++) check(canonical(r, i + 1, columns.get(i)[0]) == null, columns.get(i));
            }
        }
        run(c, "UPDATE every_type SET c0 = 5 WHERE id = 2", "DELETE FROM every_type WHERE c0 = 5");
        check(one(c, "SELECT COUNT(*) FROM every_type").equals("1"), "deleted");
        byte[] blob = new byte[17_000_000];
        Arrays.fill(blob, (byte) 0xfe);
        run(c, "CREATE TABLE large (body LONGBLOB)");
        try (PreparedStatement p = c.prepareStatement("INSERT INTO large VALUES (?)")) {
            p.setBytes(1, blob);
            equal(p.executeUpdate(), 1, "affected rows");
        }
        try (PreparedStatement p = c.prepareStatement("SELECT body FROM large WHERE LENGTH(body) > ?")) {
            p.setInt(1, 1);
            try (ResultSet r = p.executeQuery()) {
                check(r.next() && Arrays.equals(r.getBytes(1), blob), "a large value changed");
            }
        }
        run(c, "DROP TABLE large");
        point("every column type and values over 16 mib, " + how);
    }

    static void severalStatements() throws SQLException {
        try (Connection c = open("clients_java?allowMultiQueries=true&" + TLS); Statement s = c.createStatement()) {
            check(s.execute("SELECT 1; DO 0; SELECT 2"), "a result");
            check(!s.getMoreResults() && s.getUpdateCount() == 0, "no rows");
            check(s.getMoreResults(), "another result");
            ResultSet r = s.getResultSet();
            check(r.next() && r.getInt(1) == 2, "the last result");
        }
        point("several statements in one");
    }

    static void cursors() throws SQLException {
        try (Connection c = open("clients_java?" + TLS + "&useServerPrepStmts=true&useCursorFetch=true&defaultFetchSize=2&rewriteBatchedStatements=true")) {
            run(c, "DROP TABLE IF EXISTS numbers", "CREATE TABLE numbers (id INT PRIMARY KEY)");
            try (PreparedStatement p = c.prepareStatement("INSERT INTO numbers (id) VALUES (?)")) {
                for (int i = 0; i < 101; i++) {
                    p.setInt(1, i);
                    p.addBatch();
                }
                equal(p.executeBatch().length, 101, "a batch");
            }
            point("statements are prepared");
            try (PreparedStatement p = c.prepareStatement("SELECT id FROM numbers WHERE id >= ? ORDER BY id")) {
                for (int first : new int[] {0, 50}) {
                    p.setInt(1, first);
                    try (ResultSet r = p.executeQuery()) {
                        for (int i = first; i < 101; i++) check(r.next() && r.getInt(1) == i, "row", i);
                        check(!r.next(), "the end");
                    }
                }
            }
            point("server side cursors");
        }
    }

    static void callableStatements() throws SQLException {
        for (String how : new String[] {"useServerPrepStmts=false", "useServerPrepStmts=true"}) {
            try (Connection c = open("clients_java?" + TLS + "&" + how)) {
                run(c, "DROP PROCEDURE IF EXISTS give", "DROP FUNCTION IF EXISTS twice",
                        "CREATE PROCEDURE give(IN a INT, OUT b VARCHAR(20), INOUT c DECIMAL(8,2)) BEGIN SELECT a AS shown; SET b = CONCAT('got ', a), c = c + a; END",
                        "CREATE FUNCTION twice(a INT) RETURNS INT DETERMINISTIC NO SQL RETURN 2 * a");
                try (CallableStatement p = c.prepareCall("{CALL give(?, ?, ?)}")) {
                    p.registerOutParameter("b", Types.VARCHAR);
                    p.registerOutParameter(3, Types.DECIMAL);
                    for (int i = 0; i < 2; i++) {
                        p.setInt("a", 5 + i);
                        p.setBigDecimal(3, new BigDecimal("1.25"));
                        check(p.execute(), "a result set");
                        try (ResultSet r = p.getResultSet()) {
                            check(r.next() && r.getInt("shown") == 5 + i, "the result set of a procedure");
                        }
                        check(!p.getMoreResults(), "one result set");
                        check(p.getString(2).equals("got " + (5 + i)), how, p.getString(2));
                        check(p.getBigDecimal("c").equals(new BigDecimal("6.25").add(BigDecimal.valueOf(i))), how, p.getBigDecimal("c"));
                    }
                }
                try (CallableStatement p = c.prepareCall("{? = CALL twice(?)}")) {
                    p.registerOutParameter(1, Types.INTEGER);
                    p.setInt(2, 21);
                    p.execute();
                    equal(p.getInt(1), 42, "a stored function");
                }
            }
        }
        point("callable statements with parameters out");
    }

    static void transactions(Connection c) throws SQLException {
        run(c, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, z INT)", "INSERT INTO t VALUES (1, NULL)");
        c.setAutoCommit(false);
        run(c, "UPDATE t SET z = 5");
        c.rollback();
        check(one(c, "SELECT z FROM t") == null, "rollback");
        c.commit();
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        run(c, "UPDATE t SET z = 6");
        c.commit();
        c.setAutoCommit(true);
        check(one(c, "SELECT z FROM t").equals("6"), "commit");
        point("transactions");
        Object[][] errors = {{"SELEC 1", 1064, "42000"}, {"SELECT * FROM nowhere", 1146, "42S02"},
            {"SELECT nothing FROM t", 1054, "42S22"}, {"INSERT INTO t VALUES (1, 1)", 1062, "23000"},
            {"INSERT INTO t VALUES ('x', 1)", 1366, "HY000"}};
        for (Object[] error : errors) {
            try {
                run(c, (String) error[0]);
                throw new AssertionError(error[0] + " was accepted");
            } catch (SQLException e) {
                check(error[1].equals(e.getErrorCode()) && error[2].equals(e.getSQLState()), error, e);
            }
        }
        point("errors have numbers");
    }

    static void kill(Connection admin) throws Exception {
        String[][] turns = {{"KILL QUERY", "SELECT SLEEP(30)", "1"},
            {"KILL QUERY", "SELECT SLEEP(30) FROM (SELECT 1 UNION ALL SELECT 2) AS two", "1317"},
            {"KILL", "SELECT SLEEP(30)", "0"}};
        for (String[] turn : turns) {
            try (Connection victim = open("?" + TLS)) {
                String id = one(victim, "SELECT CONNECTION_ID()");
                CompletableFuture<String> stopped = CompletableFuture.supplyAsync(() -> {
                    try {
                        return one(victim, turn[1]);
                    } catch (SQLException e) {
                        return Integer.toString(e.getErrorCode());
                    }
                });
                String running = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%' AND id = " + id;
                while (one(admin, running).equals("0")) Thread.sleep(5);
                run(admin, turn[0] + " " + id);
                check(stopped.get().equals(turn[2]), turn, stopped.get());
            }
        }
        point("kill from a second connection");
    }

    static void metadata() throws SQLException {
        for (String how : new String[] {"true", "false"}) {
            try (Connection c = open("clients_java?" + TLS + "&useInformationSchema=" + how)) {
                DatabaseMetaData meta = c.getMetaData();
                try (ResultSet r = meta.getColumns("clients_java", null, "numbers", null)) {
                    check(r.next() && r.getString("COLUMN_NAME").equals("id"), "metadata of columns");
                }
                try (ResultSet r = meta.getPrimaryKeys("clients_java", null, "numbers")) {
                    check(r.next() && r.getString("COLUMN_NAME").equals("id"), "metadata of keys");
                }
                try (ResultSet r = meta.getTables("clients_java", null, "%", null)) {
                    check(r.next(), "metadata of tables");
                }
            }
        }
        point("metadata");
    }

    public static void main(String[] args) throws Exception {
        trusted = VERIFIED + new File(System.getenv("TRUSTED")).toURI().toURL();
        columns = Files.readAllLines(Path.of("../columns.tsv")).stream().map(line -> line.split("\t")).toList();
        try (Connection admin = open("?" + TLS)) {
            authentication(admin);
            run(admin, "DROP DATABASE IF EXISTS clients_java", "CREATE DATABASE clients_java");
            String[][] ways = {{"text protocol", "useServerPrepStmts=false"}, {"binary protocol", "useServerPrepStmts=true"},
                {"compressed", "useCompression=true"}};
            for (String[] way : ways) {
                String rest = "clients_java?connectionTimeZone=UTC&yearIsDateType=false&" + TLS + "&" + way[1];
                try (Connection c = open(rest)) {
                    everyColumnType(c, way[0]);
                }
            }
            severalStatements();
            cursors();
            callableStatements();
            try (Connection c = open("clients_java?" + PLAIN + "true")) {
                transactions(c);
            }
            kill(admin);
            metadata();
            run(admin, "DROP DATABASE clients_java");
        }
    }
}
