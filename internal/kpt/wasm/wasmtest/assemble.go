// Package wasmtest makes small WebAssembly modules for tests: good ones, and ones that do what no module should.
// It knows of the binary format just what these need.
package wasmtest

import "encoding/binary"

// Module is a program for WASI preview 1, whose body is its _start.
type Module struct {
	// Imports are the functions that it asks for, each of one of the types below; they are called by their place in the list.
	Imports []Import
	// Pages is the memory that it begins with.
	Pages uint32
	// Table is how many elements its table has; a negative number is no table.
	Table int32
	// Locals are how many variables the body has, of 32 bits each.
	Locals uint32
	// Body is the code, without the end.
	Body []byte
	// Data is what the memory has at Text.
	Data string
	// Library has no _start.
	Library bool
}

// Import is a function that a module asks for.
type Import struct {
	Module, Name string
	Type         Type
}

// Type is that of a function.
type Type byte

// The types that functions have.
const (
	Nothing Type = iota
	FourNumbers
	OneNumber
)

// Text is where a module's data stands.
const Text = 1024

// WASI is an import of preview 1.
func WASI(name string, of Type) Import { return Import{"wasi_snapshot_preview1", name, of} }

// Bytes is the module.
func (m Module) Bytes() []byte {
	made := []byte("\x00asm\x01\x00\x00\x00")
	made = append(made, section(1, []byte{3, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 1, 0x7f, 0})...)
	imports := number(uint64(len(m.Imports)))
	for _, i := range m.Imports {
		imports = append(append(append(imports, name(i.Module)...), name(i.Name)...), 0, byte(i.Type))
	}
	made = append(made, section(2, imports)...)
	made = append(made, section(3, []byte{1, byte(Nothing)})...)
	if m.Table >= 0 {
		made = append(made, section(4, append([]byte{1, 0x70, 0}, number(uint64(m.Table))...))...)
	}
	made = append(made, section(5, append([]byte{1, 0}, number(uint64(m.Pages))...))...)
	export := "_start"
	if m.Library {
		export = "help"
	}
	made = append(made, section(7, append(append([]byte{1}, name(export)...), 0, byte(len(m.Imports))))...)
	body := []byte{0}
	if m.Locals > 0 {
		body = append(append([]byte{1}, number(uint64(m.Locals))...), 0x7f)
	}
	body = append(append(body, m.Body...), 0x0b)
	made = append(made, section(10, append(append([]byte{1}, number(uint64(len(body)))...), body...))...)
	if m.Data != "" {
		made = append(made, section(11, append([]byte{1, 0, 0x41, 0x80, 0x08, 0x0b}, name(m.Data)...))...)
	}
	return made
}

func section(id byte, content []byte) []byte {
	return append(append([]byte{id}, number(uint64(len(content)))...), content...)
}

func name(text string) []byte { return append(number(uint64(len(text))), text...) }

func number(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// signed is a number as instructions have it.
func signed(n int32) []byte {
	out := []byte{}
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
