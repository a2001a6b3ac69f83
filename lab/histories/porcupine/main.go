// The second judge of recorded histories: Porcupine, over files of operations as JSON lines.
//
// Each column of each key is a register. It shares nothing with the first judge but the format of
// the records (lab/judges/operations.py): it reads them, expands pages and drops what
// was not written by itself. It prints one JSON object, and ends with 1 if a register has no order.
//
//	porcupine [-seconds N] FILE...
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Record is one operation of one client.
type Record struct {
	Type    string             `json:"type"`
	Client  string             `json:"client"`
	Key     string             `json:"key"`
	Columns map[string]*string `json:"columns"`
	Began   int64              `json:"began"`
	Ended   int64              `json:"ended"`
	Told    string             `json:"told"`
	Weak    bool               `json:"is_weak"`
	Section string             `json:"section"`
	After   string             `json:"after"`
	Until   *string            `json:"until"`
}

// An Access is a read or a write of one register; Absent is its value if there is none.
type Access struct {
	Write bool
	Value string
}

// Absent is no value that anybody writes: values are prefixed with "=".
const Absent = ""

var register = porcupine.Model{
	Init: func() interface{} { return Absent },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		access := input.(Access)
		if access.Write {
			return true, access.Value
		}
		return access.Value == state.(string), state
	},
	Equal: func(one, other interface{}) bool { return one.(string) == other.(string) },
}

// Owned is what the keys of fenced rows begin with. What is unknown there may be seen and vanish, so
// unknown writes are left out with everything that was read of them.
const Owned = "owned-"

// A Register has the accesses of one column, and which values were read of it.
type Register struct {
	operations []porcupine.Operation
	read       map[string]bool
	isOwned    bool
}

func valueOf(value *string) string {
	if value == nil {
		return Absent
	}
	return "=" + *value
}

func main() {
	seconds := flag.Float64("seconds", 60, "how long one register may take")
	flag.Parse()
	records := []Record{}
	for _, name := range flag.Args() {
		records = append(records, recordsOf(name)...)
	}
	registers := registersOf(records)
	failed, undecided, accesses := []string{}, []string{}, 0
	for name, each := range registers {
		operations := each.needed()
		accesses += len(operations)
		limit := time.Duration(*seconds * float64(time.Second))
		switch porcupine.CheckOperationsTimeout(register, operations, limit) {
		case porcupine.Illegal:
			failed = append(failed, name)
		case porcupine.Unknown:
			undecided = append(undecided, name)
		}
	}
	sort.Strings(failed)
	sort.Strings(undecided)
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"records": len(records), "registers": len(registers), "accesses": accesses,
		"failed": failed, "undecided": undecided,
	})
	if len(failed) > 0 {
		os.Exit(1)
	}
}

func recordsOf(name string) []Record {
	file, err := os.Open(name)
	if err != nil {
		fail(err)
	}
	defer file.Close()
	found := []Record{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		record := Record{}
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			fail(fmt.Errorf("%s: %q: %w", name, lines.Text(), err))
		}
		found = append(found, record)
	}
	if err := lines.Err(); err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	return found
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "porcupine:", err)
	os.Exit(2)
}

// registersOf gives every column of every key its accesses.
func registersOf(records []Record) map[string]*Register {
	names := map[string]map[string]bool{}
	for _, record := range records {
		if names[record.Key] == nil {
			names[record.Key] = map[string]bool{}
		}
		for name := range record.Columns {
			names[record.Key][name] = true
		}
	}
	found := map[string]*Register{}
	clients := map[string]int{}
	for _, record := range records {
		if record.isSilent() {
			continue
		}
		if _, known := clients[record.Client]; !known {
			clients[record.Client] = len(clients)
		}
		for name, value := range record.shown(names[record.Key]) {
			at := record.Key + " " + name
			if found[at] == nil {
				isOwned := strings.HasPrefix(record.Key, Owned)
				found[at] = &Register{read: map[string]bool{}, isOwned: isOwned}
			}
			found[at].add(record, clients[record.Client], valueOf(value))
		}
	}
	return found
}

func (record Record) isSilent() bool {
	if record.Type == "write" {
		return record.Told == "not written"
	}
	return record.Weak
}

// shown returns the columns that a record tells about, absent ones of a page included.
func (record Record) shown(names map[string]bool) map[string]*string {
	if record.Type != "page" {
		return record.Columns
	}
	shown := map[string]*string{}
	for name := range names {
		isWithin := name > record.After && (record.Until == nil || name <= *record.Until)
		if strings.HasPrefix(name, record.Section) && isWithin {
			shown[name] = record.Columns[name]
		}
	}
	return shown
}

func (each *Register) add(record Record, client int, value string) {
	isWrite := record.Type == "write"
	ended := record.Ended
	if isWrite && (record.Told != "written" || record.Weak) {
		ended = math.MaxInt64 // it may take effect at any later time
	}
	if !isWrite {
		each.read[value] = true
	}
	each.operations = append(each.operations, porcupine.Operation{
		ClientId: client, Input: Access{isWrite, value}, Call: record.Began, Return: ended,
	})
}

// needed leaves out unknown writes of values that nobody has read: they need not have happened.
func (each *Register) needed() []porcupine.Operation {
	kept, doubtful := []porcupine.Operation{}, map[string]bool{}
	for _, operation := range each.operations {
		if each.isOwned && operation.Return == math.MaxInt64 {
			doubtful[operation.Input.(Access).Value] = true
		}
	}
	for _, operation := range each.operations {
		value := operation.Input.(Access).Value
		if !doubtful[value] && (operation.Return < math.MaxInt64 || each.read[value]) {
			kept = append(kept, operation)
		}
	}
	return kept
}
