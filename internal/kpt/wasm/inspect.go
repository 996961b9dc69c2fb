package wasm

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

const (
	preview1 = "wasi_snapshot_preview1"
	pageSize = 64 << 10
	// maxTable bounds all tables of a module together, which take eight bytes for each element.
	maxTable = 1 << 20
	// maxLocals bounds the variables of one function, which a few bytes can declare four thousand millions of.
	maxLocals = 10_000
	// maxBody bounds the code of one function: a compiler takes more than twice as long for twice the code.
	maxBody = 512 << 10
)

// maxEntries bounds the entries of one section, and maxResults what one function takes or returns.
const (
	maxEntries = 200_000
	maxParams  = 1000
	maxResults = 8
)

// sections of a module, as the specification numbers them.
const (
	customSection = iota
	typeSection
	importSection
	functionSection
	tableSection
	memorySection
	globalSection
	exportSection
	startSection
	elementSection
	codeSection
	dataSection
	countSection
)

// isOffered tells whether modules may ask for the function. It is all of preview 1 but sockets and signals; files are asked for
// in vain, as there are none.
func isOffered(function string) bool {
	switch function {
	case "args_get", "args_sizes_get", "environ_get", "environ_sizes_get", "clock_res_get", "clock_time_get",
		"poll_oneoff", "proc_exit", "random_get", "sched_yield":
		return true
	}
	return strings.HasPrefix(function, "fd_") || strings.HasPrefix(function, "path_")
}

// inspect looks for what compiling or running the module could not be kept from, and returns the module as it may be compiled: no
// table of it grows beyond what it has to have. Least is how many bytes of memory it begins with.
func inspect(module []byte, limits Options) (made []byte, least int64, err error) {
	if int64(len(module)) > limits.MaxModule {
		return nil, 0, unfit("it has %d bytes, and %d are allowed", len(module), limits.MaxModule)
	}
	magic := []byte("\x00asm")
	if len(module) < 8 || !bytes.HasPrefix(module, magic) {
		return nil, 0, unfit("it is no WebAssembly")
	}
	if version := binary.LittleEndian.Uint32(module[4:8]); version != 1 {
		return nil, 0, unfit("it is no core module but of version %#x, as components are; build it for WASI preview 1", version)
	}
	made = slices.Clone(module[:8])
	isCommand := false
	for r := (reader{rest: module[8:]}); len(r.rest) > 0; {
		whole := r.rest
		section := r.byte()
		content := reader{rest: r.take(int64(r.number()))}
		if r.broken {
			return nil, 0, unfit("it is cut off")
		}
		whole = whole[:len(whole)-len(r.rest)]
		switch section {
		case customSection:
			continue // Names for debuggers, and whatever else.
		case tableSection:
			whole, err = bound(&content)
		case memorySection:
			least, err = checkMemory(&content, limits.MaxMemory)
		case exportSection:
			isCommand = exportsStart(&content)
		default:
			err = check(section, &content)
		}
		if err != nil {
			return nil, 0, err
		}
		if content.broken || len(content.rest) > 0 {
			return nil, 0, unfit("section %d of it is broken, or has more than %d entries", section, maxEntries)
		}
		made = append(made, whole...)
	}
	if !isCommand {
		return nil, 0, unfit("it is no command: it exports no function _start")
	}
	return made, least, nil
}

// check reads a section to its end.
func check(section byte, r *reader) error {
	switch section {
	case typeSection:
		return checkTypes(r)
	case importSection:
		return checkImports(r)
	case functionSection:
		r.skip(int(r.count(maxEntries)))
	case globalSection:
		for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
			r.take(2) // its type, and whether it changes
			r.expression()
		}
	case startSection, countSection:
		r.skip(1)
	case elementSection:
		for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
			checkElements(r)
		}
	case codeSection:
		return checkCode(r)
	case dataSection:
		for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
			checkData(r)
		}
	default:
		return unfit("it has a section %d, which is not known", section)
	}
	return nil
}

// checkTypes bounds what functions take and return: every call of one makes as many values.
func checkTypes(r *reader) error {
	for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
		if r.byte() != 0x60 {
			return unfit("it has a type that is none of a function")
		}
		params := r.number()
		r.take(int64(params))
		results := r.number()
		r.take(int64(results))
		if params > maxParams || results > maxResults {
			return unfit("one of its functions takes %d values and returns %d, and %d and %d are allowed", params, results, maxParams, maxResults)
		}
	}
	return nil
}

// checkElements reads what tables are filled with, in the eight forms that there are.
func checkElements(r *reader) {
	form := r.number()
	isPassive, isExplicit, hasExpressions := form&1 != 0, form&2 != 0, form&4 != 0
	if r.broken = r.broken || form > 7; !isPassive {
		if isExplicit {
			r.skip(1) // the table
		}
		r.expression()
	}
	if isPassive || isExplicit {
		r.byte() // what they are
	}
	n := r.count(maxTable)
	if !hasExpressions {
		r.skip(int(n))
		return
	}
	for ; n > 0 && !r.broken; n-- {
		r.expression()
	}
}

// checkData reads what memory is filled with.
func checkData(r *reader) {
	form := r.number()
	if r.broken = r.broken || form > 2; form == 2 {
		r.skip(1) // the memory
	}
	if form != 1 {
		r.expression()
	}
	r.take(int64(r.number()))
}

// checkImports refuses whatever would lead out of the module.
func checkImports(r *reader) error {
	for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
		module, name, kind := r.text(), r.text(), r.byte()
		if r.broken {
			return nil
		}
		if module != preview1 || kind != 0 || !isOffered(name) {
			return unfit("it asks for %q of %q, and there are only the functions of %s without sockets and signals", name, module, preview1)
		}
		r.number() // the function's type
	}
	return nil
}

// bound is the section with a limit for each table that has none or a higher one: what tables grow by is counted nowhere else.
func bound(r *reader) ([]byte, error) {
	n := r.count(maxEntries)
	content := binary.AppendUvarint(nil, uint64(n))
	total := uint64(0)
	for ; n > 0 && !r.broken; n-- {
		of, flags, least := r.byte(), r.byte(), r.number()
		if flags&1 != 0 {
			r.number()
		}
		if of != 0x70 && of != 0x6f || flags > 1 {
			return nil, unfit("it has a table of a kind that is not known")
		}
		if total += uint64(least); total > maxTable {
			return nil, unfit("its tables have %d elements, and %d are allowed", total, maxTable)
		}
		content = append(content, of, 1)
		content = binary.AppendUvarint(content, uint64(least))
		content = binary.AppendUvarint(content, uint64(least))
	}
	section := binary.AppendUvarint([]byte{tableSection}, uint64(len(content)))
	return append(section, content...), nil
}

// checkMemory returns how many bytes the memory has at first.
func checkMemory(r *reader, most int64) (int64, error) {
	switch n := r.number(); n {
	case 0:
		return 0, nil
	case 1:
	default:
		return 0, unfit("it has %d memories, and one is allowed", n)
	}
	if flags := r.byte(); flags > 1 {
		return 0, unfit("its memory is shared or of 64 bits, which is not offered")
	}
	least := int64(r.number()) * pageSize
	r.rest = nil // The highest number of pages comes behind; what is allowed bounds them.
	if least > most {
		return 0, unfit("it begins with %d bytes of memory, and %d are allowed", least, most)
	}
	return least, nil
}

func exportsStart(r *reader) bool {
	found := false
	for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
		name, kind := r.text(), r.byte()
		r.number()
		found = found || name == "_start" && kind == 0
	}
	return found
}

func checkCode(r *reader) error {
	for n := r.count(maxEntries); n > 0 && !r.broken; n-- {
		body := reader{rest: r.take(int64(r.number()))}
		if len(body.rest) > maxBody {
			return unfit("one of its functions has %d bytes, and %d are allowed", len(body.rest), maxBody)
		}
		locals := uint64(0)
		for groups := body.number(); groups > 0 && !body.broken; groups-- {
			locals += uint64(body.number())
			body.byte()
		}
		if r.broken = r.broken || body.broken; locals > maxLocals {
			return unfit("one of its functions has %d variables, and %d are allowed", locals, maxLocals)
		}
	}
	return nil
}
