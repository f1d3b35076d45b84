// What every client must be able to do, through go-sql-driver/mysql.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open(options string) *sql.DB {
	dsn := fmt.Sprintf("root:%s@tcp(127.0.0.1:%s)/%s", os.Getenv("PASSWORD"), os.Getenv("PORT"), options)
	db, err := sql.Open("mysql", dsn)
	must(err)
	return db
}

func main() {
	pem, err := os.ReadFile(os.Getenv("CA"))
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	must(mysql.RegisterTLSConfig("squall", &tls.Config{RootCAs: pool, InsecureSkipVerify: true}))
	plain := open("?multiStatements=true")
	_, err = plain.Exec("DROP DATABASE IF EXISTS clients_go; CREATE DATABASE clients_go")
	must(err)
	for _, options := range []string{"?parseTime=true", "?parseTime=true&tls=squall", "?parseTime=true&interpolateParams=true"} {
		scenario(open("clients_go" + options))
	}
	_, err = plain.Exec("DROP DATABASE clients_go")
	must(err)
	fmt.Println("  go-sql-driver: prepared, interpolated, TLS, transactions, errors, cancel")
}

func scenario(db *sql.DB) {
	_, err := db.Exec("DROP TABLE IF EXISTS t")
	must(err)
	_, err = db.Exec("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, n BIGINT, d DECIMAL(65,30), s VARCHAR(50), b LONGBLOB, at DATETIME(6), z INT)")
	must(err)
	blob := bytes.Repeat([]byte{0, 255, 7}, 6_000_000)
	at := time.Date(2026, 11, 21, 1, 2, 3, 456789000, time.UTC)
	result, err := db.Exec("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", uint64(math.MaxUint64), int64(math.MinInt64), "1.5", "☃𝄢", blob, at, nil)
	must(err)
	if n, _ := result.RowsAffected(); n != 1 {
		log.Fatal("affected rows")
	}
	var id uint64
	var n int64
	var d, s string
	var b []byte
	var when time.Time
	var z sql.NullInt64
	must(db.QueryRow("SELECT * FROM t WHERE id = ?", uint64(math.MaxUint64)).Scan(&id, &n, &d, &s, &b, &when, &z))
	if id != math.MaxUint64 || n != math.MinInt64 || d != "1.500000000000000000000000000000" || s != "☃𝄢" || !bytes.Equal(b, blob) || !when.Equal(at) || z.Valid {
		log.Fatal("a value changed on its way: ", id, n, d, s, len(b), when, z)
	}
	tx, err := db.Begin()
	must(err)
	_, err = tx.Exec("UPDATE t SET z = 1")
	must(err)
	must(tx.Rollback())
	must(db.QueryRow("SELECT z FROM t").Scan(&z))
	if z.Valid {
		log.Fatal("rollback kept a change")
	}
	_, err = db.Exec("INSERT INTO t (id) VALUES (?)", uint64(math.MaxUint64))
	var failure *mysql.MySQLError
	if !errors.As(err, &failure) || failure.Number != 1062 {
		log.Fatal("duplicate key: ", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err = db.ExecContext(ctx, "SELECT SLEEP(20)"); err == nil {
		log.Fatal("the context was ignored")
	}
}
