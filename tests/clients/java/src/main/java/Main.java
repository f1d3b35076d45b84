import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Arrays;

/** What every client must be able to do, through Connector/J. */
public class Main {
    static final String URL = "jdbc:mysql://127.0.0.1:" + System.getenv("PORT") + "/";

    static Connection open(String rest) throws SQLException {
        return DriverManager.getConnection(URL + rest, "root", System.getenv("PASSWORD"));
    }

    static void check(boolean truth, String what) {
        if (!truth) throw new AssertionError(what);
    }

    public static void main(String[] args) throws Exception {
        try (Connection admin = open("?sslMode=REQUIRED"); Statement s = admin.createStatement()) {
            s.execute("DROP DATABASE IF EXISTS clients_java");
            s.execute("CREATE DATABASE clients_java");
        }
        for (String options : new String[] {
                "sslMode=REQUIRED",
                "sslMode=DISABLED&allowPublicKeyRetrieval=true&useServerPrepStmts=true",
                "sslMode=REQUIRED&useServerPrepStmts=true&useCursorFetch=true&defaultFetchSize=2",
                "sslMode=REQUIRED&useCompression=true&rewriteBatchedStatements=true&allowMultiQueries=true"}) {
            scenario("clients_java?connectionTimeZone=UTC&" + options);
        }
        try (Connection admin = open("?sslMode=REQUIRED"); Statement s = admin.createStatement()) {
            s.execute("DROP DATABASE clients_java");
        }
        System.out.println("  Connector/J: text, prepared, cursors, TLS, public key, compression, metadata");
    }

    static void scenario(String options) throws SQLException {
        try (Connection c = open(options); Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS t");
            s.execute("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(65,30), v VARCHAR(50), b LONGBLOB, at DATETIME(6), z INT)");
            byte[] blob = new byte[17_000_000];
            Arrays.fill(blob, (byte) 0xfe);
            BigInteger top = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);
            try (PreparedStatement p = c.prepareStatement("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)")) {
                p.setBigDecimal(1, new BigDecimal(top));
                p.setBigDecimal(2, new BigDecimal("1.5"));
                p.setString(3, "\u2603\uD83D\uDCA9");
                p.setBytes(4, blob);
                p.setTimestamp(5, Timestamp.valueOf("2026-11-21 01:02:03.456789"));
                p.setNull(6, java.sql.Types.INTEGER);
                check(p.executeUpdate() == 1, "affected rows");
            }
            try (PreparedStatement p = c.prepareStatement("SELECT id, d, v, b, at, z FROM t WHERE id = ?")) {
                p.setBigDecimal(1, new BigDecimal(top));
                try (ResultSet r = p.executeQuery()) {
                    check(r.next(), "the row is there");
                    check(r.getObject(1).equals(top), "BIGINT UNSIGNED " + r.getObject(1));
                    check(r.getBigDecimal(2).compareTo(new BigDecimal("1.5")) == 0, "DECIMAL");
                    check(r.getString(3).equals("\u2603\uD83D\uDCA9"), "VARCHAR");
                    check(Arrays.equals(r.getBytes(4), blob), "LONGBLOB");
                    check(r.getTimestamp(5).getNanos() == 456789000, "DATETIME(6)");
                    check(r.getInt(6) == 0 && r.wasNull(), "NULL");
                }
            }
            s.execute("DELETE FROM t");
            try (PreparedStatement p = c.prepareStatement("INSERT INTO t (id) VALUES (?)")) {
                for (int i = 0; i < 7; i++) {
                    p.setInt(1, i);
                    p.addBatch();
                }
                p.executeBatch();
            }
            try (PreparedStatement p = c.prepareStatement("SELECT id FROM t ORDER BY id"); ResultSet r = p.executeQuery()) {
                for (int i = 0; i < 7; i++) check(r.next() && r.getInt(1) == i, "row " + i);
                check(!r.next(), "seven rows");
            }
            c.setAutoCommit(false);
            s.executeUpdate("DELETE FROM t");
            c.rollback();
            c.setAutoCommit(true);
            try (ResultSet r = s.executeQuery("SELECT COUNT(*) FROM t")) {
                check(r.next() && r.getInt(1) == 7, "rollback");
            }
            try {
                s.executeUpdate("INSERT INTO t (id) VALUES (3)");
                throw new AssertionError("a duplicate was accepted");
            } catch (SQLException e) {
                check(e.getErrorCode() == 1062 && e.getSQLState().equals("23000"), "duplicate: " + e);
            }
            DatabaseMetaData meta = c.getMetaData();
            try (ResultSet r = meta.getColumns("clients_java", null, "t", null)) {
                check(r.next() && r.getString("COLUMN_NAME").equals("id"), "metadata of columns");
            }
            try (ResultSet r = meta.getPrimaryKeys("clients_java", null, "t")) {
                check(r.next() && r.getString("COLUMN_NAME").equals("id"), "metadata of keys");
            }
        }
    }
}
