// Reads the whole binary log with go-mysql, by its replication package and by canal, and compares the rows that its changes lead to with a SELECT.
//
// Environment: PORT. Prints the differences; the exit code tells whether there are any.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-mysql-org/go-mysql/schema"
)

const database = "read_by_others"

type tables map[string]map[string][]any

var faults int

func fault(format string, values ...any) {
	faults++
	fmt.Printf(format+"\n", values...)
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func (all tables) of(name string) map[string][]any {
	if all[name] == nil {
		all[name] = map[string][]any{}
	}
	return all[name]
}

func key(row []any) string { return fmt.Sprint(row[0]) }

func connect(port int) *client.Conn {
	conn, err := client.Connect(fmt.Sprintf("127.0.0.1:%d", port), "root", "", "", func(c *client.Conn) error {
		return c.SetCharset("utf8mb4")
	})
	check(err)
	return conn
}

// The log by the replication package, from its first byte.
func stream(port int, first string, executed mysql.GTIDSet) tables {
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 78, Flavor: "mysql", Host: "127.0.0.1", Port: uint16(port), User: "root", TimestampStringLocation: time.UTC,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), VerifyChecksum: true,
	})
	defer syncer.Close()
	streamer, err := syncer.StartSync(mysql.Position{Name: first, Pos: 4})
	check(err)
	all, seen := tables{}, &mysql.MysqlGTIDSet{Sets: map[string]*mysql.UUIDSet{}}
	for !seen.Contain(executed) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		event, err := streamer.GetEvent(ctx)
		cancel()
		check(err)
		switch body := event.Event.(type) {
		case *replication.GTIDEvent:
			next, err := body.GTIDNext()
			check(err)
			check(seen.Update(next.String()))
		case *replication.QueryEvent:
			if strings.HasPrefix(string(body.Query), "TRUNCATE") {
				all["copied"] = nil
			}
		case *replication.RowsEvent:
			if string(body.Table.Schema) != database {
				continue
			}
			rows := all.of(string(body.Table.Table))
			switch event.Header.EventType {
			case replication.WRITE_ROWS_EVENTv2:
				for _, row := range body.Rows {
					rows[key(row)] = row
				}
			case replication.DELETE_ROWS_EVENTv2:
				for _, row := range body.Rows {
					delete(rows, key(row))
				}
			case replication.UPDATE_ROWS_EVENTv2:
				for at := 0; at < len(body.Rows); at += 2 {
					delete(rows, key(body.Rows[at]))
					rows[key(body.Rows[at+1])] = body.Rows[at+1]
				}
			default:
				fault("an event of kind %v", event.Header.EventType)
			}
		}
	}
	// The last transaction's rows follow its identifier.
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		event, err := streamer.GetEvent(ctx)
		cancel()
		if err != nil {
			return all
		}
		if body, ok := event.Event.(*replication.RowsEvent); ok && string(body.Table.Schema) == database {
			for _, row := range body.Rows {
				all.of(string(body.Table.Table))[key(row)] = row
			}
		}
	}
}

type handler struct {
	canal.DummyEventHandler
	rows, transactions int
}

func (h *handler) OnRow(event *canal.RowsEvent) error { h.rows += len(event.Rows); return nil }
func (h *handler) OnXID(*replication.EventHeader, mysql.Position) error {
	h.transactions++
	return nil
}

// The same log by canal, which reads the tables' definitions too: rows that come after the log was opened.
func follow(port int, conn *client.Conn) {
	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Password = fmt.Sprintf("127.0.0.1:%d", port), "root", ""
	config.Dump.ExecutionPath = ""
	config.ServerID = 79
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	reader, err := canal.NewCanal(config)
	check(err)
	h := &handler{}
	reader.SetEventHandler(h)
	set, err := reader.GetMasterGTIDSet()
	check(err)
	go func() { check(reader.StartFromGTID(set)) }()
	for at := 0; at < 5; at++ {
		_, err := conn.Execute(fmt.Sprintf("INSERT INTO %s.copied VALUES (%d, 'canal', 'v')", database, 1000+at))
		check(err)
	}
	_, err = conn.Execute("DELETE FROM " + database + ".copied WHERE id >= 1000")
	check(err)
	check(reader.CatchMasterPos(20 * time.Second))
	table, err := reader.GetTable(database, "numbers")
	check(err)
	if len(table.Columns) != 22 || table.Columns[4].Type != schema.TYPE_NUMBER || !table.Columns[4].IsUnsigned || len(table.PKColumns) != 1 {
		fault("canal sees another table: %+v", table)
	}
	reader.Close()
	if h.rows != 10 || h.transactions != 6 {
		fault("canal read %d rows of %d transactions", h.rows, h.transactions)
	}
	fmt.Printf("canal: %d rows, %d transactions\n", h.rows, h.transactions)
}

// A value as the text that a SELECT gives.
func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(value)
	case float32:
		return strconv.FormatFloat(float64(value), 'g', 6, 32)
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	default:
		return fmt.Sprint(value)
	}
}

func bits(kind string, size int) uint64 {
	switch {
	case strings.HasPrefix(kind, "tinyint"):
		return 8
	case strings.HasPrefix(kind, "smallint"):
		return 16
	case strings.HasPrefix(kind, "mediumint"):
		return 24
	case strings.HasPrefix(kind, "int"):
		return 32
	}
	return uint64(size)
}

// What the log has and what the table has, both as the type wants them compared.
func comparable(kind string, read any, stored any) (string, string) {
	left, right := shown(read), shown(stored)
	if read == nil || stored == nil {
		return left, right
	}
	switch {
	case strings.HasSuffix(kind, "unsigned") && strings.Contains(kind, "int"):
		// The reader shows them signed.
		number, err := strconv.ParseInt(left, 10, 64)
		if err == nil && number < 0 {
			width := bits(kind, 64)
			left = fmt.Sprint(uint64(number) & (^uint64(0) >> (64 - width)))
		}
	case kind == "json":
		var a, b any
		decode(left, &a)
		decode(right, &b)
		if reflect.DeepEqual(a, b) {
			return "", ""
		}
	case strings.HasPrefix(kind, "enum"), strings.HasPrefix(kind, "set"):
		left = named(kind, left)
	case strings.HasPrefix(kind, "bit"):
		var number uint64
		for _, octet := range []byte(right) {
			number = number<<8 | uint64(octet)
		}
		right = fmt.Sprint(int64(number))
	case strings.HasPrefix(kind, "binary"):
		// Zeros at the end are not in the log.
		left, right = strings.TrimRight(left, "\x00"), strings.TrimRight(right, "\x00")
	case kind == "float", kind == "double":
		a, _ := strconv.ParseFloat(left, 64)
		b, _ := strconv.ParseFloat(right, 64)
		if difference := a - b; difference < 1e-6 && difference > -1e-6 || a == b {
			return "", ""
		}
	case strings.HasPrefix(kind, "decimal"):
		if strings.Contains(left, ".") {
			left, right = strings.TrimRight(left, "0"), strings.TrimRight(right, "0")
		}
	}
	return left, right
}

func decode(text string, into any) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	check(decoder.Decode(into))
}

// The names of the numbers of an ENUM or SET.
func named(kind, number string) string {
	value, err := strconv.ParseUint(number, 10, 64)
	check(err)
	inner := kind[strings.Index(kind, "(")+1 : len(kind)-1]
	var names []string
	for _, name := range strings.Split(strings.Trim(inner, "'"), "','") {
		names = append(names, strings.ReplaceAll(name, "''", "'"))
	}
	if strings.HasPrefix(kind, "enum") {
		if value == 0 {
			return ""
		}
		return names[value-1]
	}
	var chosen []string
	for at, name := range names {
		if value>>at&1 == 1 {
			chosen = append(chosen, name)
		}
	}
	return strings.Join(chosen, ",")
}

func compare(conn *client.Conn, read tables) int {
	_, err := conn.Execute("SET time_zone = '+00:00'")
	check(err)
	names, err := conn.Execute("SHOW TABLES FROM " + database)
	check(err)
	count := 0
	for at := range names.Values {
		table, _ := names.GetString(at, 0)
		shape, err := conn.Execute("SHOW COLUMNS FROM " + database + "." + table)
		check(err)
		rows, err := conn.Execute("SELECT * FROM " + database + "." + table)
		check(err)
		if len(rows.Values) != len(read[table]) {
			fault("%s: the log leads to %d rows, the table has %d", table, len(read[table]), len(rows.Values))
		}
		for at := range rows.Values {
			id := shown(rows.Values[at][0].Value())
			found := read[table][id]
			count++
			for column := range rows.Values[at] {
				name, _ := shape.GetString(column, 0)
				kind, _ := shape.GetString(column, 1)
				if column >= len(found) {
					// Added later.
					continue
				}
				left, right := comparable(kind, found[column], rows.Values[at][column].Value())
				if left != right {
					fault("%s %s %s: the log has %.60q, the table %.60q", table, id, name, left, right)
				}
			}
		}
	}
	return count
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	check(err)
	conn := connect(port)
	logs, err := conn.Execute("SHOW BINARY LOGS")
	check(err)
	first, _ := logs.GetString(0, 0)
	text, err := conn.Execute("SELECT @@gtid_executed")
	check(err)
	executed, _ := text.GetString(0, 0)
	set, err := mysql.ParseMysqlGTIDSet(executed)
	check(err)
	read := stream(port, first, set)
	count := compare(conn, read)
	var found []string
	for name := range read {
		found = append(found, name)
	}
	sort.Strings(found)
	fmt.Printf("go-mysql: %d rows of %v\n", count, found)
	follow(port, conn)
	if faults > 0 {
		os.Exit(1)
	}
}
