// What every client must be able to do, through go-sql-driver/mysql; a line for each point.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

type column struct{ kind, text string }

func must(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

func check(truth bool, what ...any) {
	if !truth {
		log.Output(2, fmt.Sprint(what...))
		os.Exit(1)
	}
}

// Opens a pool; `where` is an address as a DSN has it.
func open(account, where, rest string) *sql.DB {
	db, err := sql.Open("mysql", account+"@"+where+"/"+rest)
	must(err)
	return db
}

func tcp() string { return "tcp(127.0.0.1:" + os.Getenv("PORT") + ")" }

func root(rest string) *sql.DB { return open("root:"+os.Getenv("PASSWORD"), tcp(), rest) }

func run(db *sql.DB, statements ...string) {
	for _, statement := range statements {
		_, err := db.Exec(statement)
		must(err)
	}
}

// Number of the error that logging in ends with: 0 for none, -1 for one of the driver.
func login(account, where, rest string) int {
	db := open(account, where, rest)
	defer db.Close()
	var who string
	err := db.QueryRow("SELECT CURRENT_USER()").Scan(&who)
	var failure *mysql.MySQLError
	switch {
	case errors.As(err, &failure):
		return int(failure.Number)
	case err != nil:
		return -1
	}
	check(strings.HasPrefix(who, strings.Split(account, ":")[0]+"@"), who)
	return 0
}

func number(err error) int {
	var failure *mysql.MySQLError
	if errors.As(err, &failure) {
		return int(failure.Number)
	}
	return -1
}

func authentication(admin *sql.DB) {
	run(admin, "DROP USER IF EXISTS go_sha2, go_native, go_strict, go_peer@localhost, go_stranger@localhost")
	run(admin, "CREATE USER go_sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'")
	for _, rest := range []string{"?tls=squall", "?tls=squall", ""} {
		check(login("go_sha2:secret", tcp(), rest) == 0, "sha2 ", rest)
		check(login("go_sha2:wrong", tcp(), rest) == 1045, "sha2 wrong ", rest)
	}
	point("caching sha2 password full and fast")
	run(admin, "ALTER USER go_sha2 IDENTIFIED BY 'other secret'")
	check(login("go_sha2:other secret", tcp(), "") == 0, "sha2 by RSA")
	check(login("go_sha2:wrong", tcp(), "") == 1045, "sha2 wrong by RSA")
	point("caching sha2 password with the servers public key")
	run(admin, "CREATE USER go_native IDENTIFIED WITH mysql_native_password BY 'secret'")
	for _, rest := range []string{"", "?tls=squall"} {
		check(login("go_native:secret", tcp(), rest) == 0, "native ", rest)
		check(login("go_native:wrong", tcp(), rest) == 1045, "native wrong ", rest)
	}
	point("mysql native password")
	me, err := user.Current()
	must(err)
	run(admin, "CREATE USER go_peer@localhost IDENTIFIED WITH auth_socket AS '"+me.Username+"'",
		"CREATE USER go_stranger@localhost IDENTIFIED WITH auth_socket AS 'nobody else'")
	socket := "unix(" + os.Getenv("SOCKET") + ")"
	check(login("go_peer", socket, "") == 0, "peer")
	check(login("go_peer", tcp(), "") != 0, "peer over TCP")
	check(login("go_stranger", socket, "") != 0, "stranger")
	point("auth socket")
	run(admin, "CREATE USER go_strict IDENTIFIED BY 'secret' REQUIRE SSL")
	check(login("go_strict:secret", tcp(), "?tls=squall") == 0, "TLS required")
	check(login("go_strict:secret", tcp(), "") == 1045, "TLS required and not given")
	check(login("root:"+os.Getenv("PASSWORD"), tcp(), "?tls=true") == -1, "an unknown authority was trusted")
	point("tls required and verified")
	run(admin, "DROP USER go_sha2, go_native, go_strict, go_peer@localhost, go_stranger@localhost")
}

func columns() (list []column) {
	file, err := os.Open("../columns.tsv")
	must(err)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		kind, text, _ := strings.Cut(lines.Text(), "\t")
		list = append(list, column{kind, text})
	}
	return list
}

func canonical(kind string, cell []byte) string {
	if strings.HasPrefix(kind, "BIT") || strings.Contains(kind, "BLOB") || strings.Contains(kind, "BINARY") {
		return "0x" + hex.EncodeToString(cell)
	}
	if kind == "FLOAT" || kind == "DOUBLE" {
		number, err := strconv.ParseFloat(string(cell), 64)
		must(err)
		return strings.Replace(strconv.FormatFloat(number, 'g', -1, 64), "e+", "e", 1)
	}
	return string(cell)
}

func everyColumnType(db *sql.DB, how string) {
	list := columns()
	names, marks, body, values, nulls := []string{}, []string{}, "", []any{}, []any{}
	for i, column := range list {
		names, marks, nulls = append(names, fmt.Sprint("c", i)), append(marks, "?"), append(nulls, nil)
		body += fmt.Sprintf(", c%d %s NULL", i, column.kind)
		if plain, isHex := strings.CutPrefix(column.text, "0x"); isHex {
			raw, err := hex.DecodeString(plain)
			must(err)
			values = append(values, raw)
		} else {
			values = append(values, column.text)
		}
	}
	run(db, "DROP TABLE IF EXISTS every_type", "CREATE TABLE every_type (id INT PRIMARY KEY AUTO_INCREMENT"+body+")")
	fields := strings.Join(names, ", ")
	insert := "INSERT INTO every_type (" + fields + ") VALUES (" + strings.Join(marks, ", ") + ")"
	result, err := db.Exec(insert, values...)
	must(err)
	id, _ := result.LastInsertId()
	affected, _ := result.RowsAffected()
	check(id == 1 && affected == 1, "id and rows ", id, affected)
	_, err = db.Exec(insert, nulls...)
	must(err)
	cells, places := make([]sql.RawBytes, len(list)), make([]any, len(list))
	for i := range cells {
		places[i] = &cells[i]
	}
	rows, err := db.Query("SELECT "+fields+" FROM every_type WHERE id > ? ORDER BY id", 0)
	must(err)
	check(rows.Next(), "no row")
	must(rows.Scan(places...))
	for i, column := range list {
		check(canonical(column.kind, cells[i]) == column.text, how, column, string(cells[i]))
	}
	check(rows.Next(), "no row of NULLs")
	must(rows.Scan(places...))
	for i, column := range list {
		check(cells[i] == nil, how, column, string(cells[i]))
	}
	must(rows.Close())
	run(db, "UPDATE every_type SET c0 = 5 WHERE id = 2", "DELETE FROM every_type WHERE c0 = 5")
	point("every column type, " + how)
	blob := bytes.Repeat([]byte{0, 255, 7}, 6_000_000)
	run(db, "DROP TABLE IF EXISTS large", "CREATE TABLE large (body LONGBLOB)")
	_, err = db.Exec("INSERT INTO large VALUES (?)", blob)
	must(err)
	var read []byte
	must(db.QueryRow("SELECT body FROM large WHERE LENGTH(body) > ?", 1).Scan(&read))
	check(bytes.Equal(read, blob), "a large value changed")
	run(db, "DROP TABLE large")
	point("values over 16 mib, " + how)
}

func times(db *sql.DB) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 456789000, time.UTC)
	run(db, "DROP TABLE IF EXISTS times", "CREATE TABLE times (at DATETIME(6))")
	_, err := db.Exec("INSERT INTO times VALUES (?)", at)
	must(err)
	var read time.Time
	must(db.QueryRow("SELECT at FROM times WHERE at = ?", at).Scan(&read))
	check(read.Equal(at), read)
	point("times as the language's own")
}

func severalStatements() {
	db := root("?multiStatements=true")
	defer db.Close()
	rows, err := db.Query("SELECT 1; SELECT 2")
	must(err)
	for wanted := 1; wanted <= 2; wanted++ {
		var read int
		check(rows.Next(), "no row")
		must(rows.Scan(&read))
		check(read == wanted, read)
		check(rows.NextResultSet() == (wanted == 1), "number of results")
	}
	must(rows.Close())
	point("several statements in one")
}

func prepared(db *sql.DB) {
	statement, err := db.Prepare("SELECT ? + 1, ?")
	must(err)
	for i := 0; i < 50; i++ {
		var sum int
		var text string
		must(statement.QueryRow(i, "☃").Scan(&sum, &text))
		check(sum == i+1 && text == "☃", sum, text)
	}
	must(statement.Close())
	point("statements are prepared")
	skip("server side cursors", "the driver has none; rows are streamed")
}

func transactions(db *sql.DB) {
	run(db, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, z INT)", "INSERT INTO t VALUES (1, NULL)")
	tx, err := db.Begin()
	must(err)
	_, err = tx.Exec("UPDATE t SET z = 1")
	must(err)
	must(tx.Rollback())
	var z sql.NullInt64
	must(db.QueryRow("SELECT z FROM t").Scan(&z))
	check(!z.Valid, "rollback kept a change")
	tx, err = db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	must(err)
	_, err = tx.Exec("UPDATE t SET z = 2")
	must(err)
	must(tx.Commit())
	must(db.QueryRow("SELECT z FROM t").Scan(&z))
	check(z.Int64 == 2, "commit lost a change")
	point("transactions")
	for statement, wanted := range map[string]int{
		"SELEC 1": 1064, "SELECT * FROM nowhere": 1146, "SELECT nothing FROM t": 1054,
		"INSERT INTO t VALUES (1, 1)": 1062, "INSERT INTO t VALUES ('x', 1)": 1366} {
		_, err = db.Exec(statement)
		check(number(err) == wanted, statement, err)
	}
	point("errors have numbers")
}

func kill(db *sql.DB) {
	ctx := context.Background()
	for _, turn := range []struct{ kill, statement, outcome string }{
		{"KILL QUERY", "SELECT SLEEP(30)", "1"},
		{"KILL QUERY", "SELECT SLEEP(30) FROM (SELECT 1 UNION ALL SELECT 2) AS two", "1317"},
		{"KILL", "SELECT SLEEP(30)", "-1"}} {
		victim, err := db.Conn(ctx)
		must(err)
		var id int
		must(victim.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
		done := make(chan string)
		go func() {
			var slept string
			err := victim.QueryRowContext(ctx, turn.statement).Scan(&slept)
			if err != nil {
				slept = fmt.Sprint(number(err))
			}
			done <- slept
		}()
		for running := 0; running == 0; time.Sleep(5 * time.Millisecond) {
			must(db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND info LIKE 'SELECT SLEEP%'", id).Scan(&running))
		}
		run(db, fmt.Sprint(turn.kill, " ", id))
		outcome := <-done
		check(outcome == turn.outcome, turn, outcome)
		victim.Close()
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(short, "SELECT SLEEP(20)")
	check(err != nil, "the context was ignored")
	point("kill from a second connection")
}

func point(name string) { fmt.Println("  go-sql-driver:", name) }

func skip(name, reason string) { fmt.Println("  go-sql-driver: SKIPPED", name+":", reason) }

func main() {
	log.SetFlags(log.Lshortfile)
	pem, err := os.ReadFile(os.Getenv("CA"))
	must(err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	must(mysql.RegisterTLSConfig("squall", &tls.Config{RootCAs: authorities, ServerName: "localhost"}))
	must(mysql.SetLogger(log.New(new(bytes.Buffer), "", 0)))
	admin := root("")
	authentication(admin)
	run(admin, "DROP DATABASE IF EXISTS clients_go", "CREATE DATABASE clients_go")
	everyColumnType(root("clients_go"), "binary protocol")
	everyColumnType(root("clients_go?interpolateParams=true&tls=squall"), "text protocol over TLS")
	everyColumnType(root("clients_go?compress=true"), "compressed")
	times(root("clients_go?parseTime=true"))
	severalStatements()
	db := root("clients_go")
	prepared(db)
	transactions(db)
	kill(db)
	run(admin, "DROP DATABASE clients_go")
}
