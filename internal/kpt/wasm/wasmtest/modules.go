package wasmtest

// code joins instructions.
func code(parts ...[]byte) []byte {
	joined := []byte{}
	for _, part := range parts {
		joined = append(joined, part...)
	}
	return joined
}

func constant(n int32) []byte { return append([]byte{0x41}, signed(n)...) }

// store puts a number into memory.
func store(at, value int32) []byte { return code(constant(at), constant(value), []byte{0x36, 2, 0}) }

// call calls the function with the numbers and drops what it returns.
func call(function byte, numbers ...int32) []byte {
	called := []byte{}
	for _, n := range numbers {
		called = append(called, constant(n)...)
	}
	return append(called, 0x10, function, 0x1a)
}

// forever repeats it.
func forever(body ...[]byte) []byte {
	return code([]byte{0x03, 0x40}, code(body...), []byte{0x0c, 0, 0x0b})
}

// orBreak breaks the module if the number is -1, as where nothing more could be had.
func orBreak() []byte { return code(constant(-1), []byte{0x46, 0x04, 0x40, 0x00, 0x0b}) }

// Replace writes what it reads with one byte in place of another.
func Replace(from, to byte) []byte {
	return Module{
		Imports: []Import{WASI("fd_read", FourNumbers), WASI("fd_write", FourNumbers)}, Pages: 1, Table: -1, Locals: 2,
		Body: forever(
			store(0, Text), store(4, 4096), call(0, 0, 0, 1, 8),
			constant(8), []byte{0x28, 2, 0, 0x22, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b}, // Nothing was read: that is all.
			constant(0), []byte{0x21, 1},
			[]byte{0x03, 0x40, 0x20, 1, 0x2d, 0, 0x80, 0x08}, constant(int32(from)), []byte{0x46, 0x04, 0x40},
			[]byte{0x20, 1}, constant(int32(to)), []byte{0x3a, 0, 0x80, 0x08, 0x0b},
			[]byte{0x20, 1}, constant(1), []byte{0x6a, 0x22, 1, 0x20, 0, 0x49, 0x0d, 0, 0x0b},
			constant(4), []byte{0x20, 0, 0x36, 2, 0}, call(1, 1, 0, 1, 12),
		),
	}.Bytes()
}

// Write writes the text, whatever it could read.
func Write(text string) []byte {
	return Module{
		Imports: []Import{WASI("fd_write", FourNumbers)}, Pages: 1 + uint32(len(text)>>16) + 1, Table: -1,
		Body: code(store(0, Text), store(4, int32(len(text))), call(0, 1, 0, 1, 8)), Data: text,
	}.Bytes()
}

// Exit says the words to people and exits.
func Exit(with int32, words string) []byte {
	return Module{
		Imports: []Import{WASI("fd_write", FourNumbers), WASI("proc_exit", OneNumber)}, Pages: 1, Table: -1,
		Body: code(store(0, Text), store(4, int32(len(words))), call(0, 2, 0, 1, 8), constant(with), []byte{0x10, 1}), Data: words,
	}.Bytes()
}

// Loop never ends.
func Loop() []byte { return Module{Pages: 1, Table: -1, Body: forever()}.Bytes() }

// Allocate takes memory until there is no more.
func Allocate() []byte {
	return Module{Pages: 1, Table: -1, Body: forever(constant(16), []byte{0x40, 0}, orBreak())}.Bytes()
}

// GrowTable makes its table larger until that fails.
func GrowTable() []byte {
	return Module{Pages: 1, Table: 1, Body: forever([]byte{0xd0, 0x70}, constant(1<<20), []byte{0xfc, 0x0f, 0}, orBreak())}.Bytes()
}

// Recurse calls itself for ever.
func Recurse() []byte { return Module{Pages: 1, Table: -1, Body: []byte{0x10, 0}}.Bytes() }

// Break breaks.
func Break() []byte { return Module{Pages: 1, Table: -1, Body: []byte{0}}.Bytes() }

// Print writes to the descriptor without end: 1 is the output, and 2 is what people read.
func Print(descriptor int32) []byte {
	return Module{
		Imports: []Import{WASI("fd_write", FourNumbers)}, Pages: 2, Table: -1,
		Body: code(store(0, Text), store(4, 1<<16), forever(call(0, descriptor, 0, 1, 8))),
	}.Bytes()
}

// Ask asks for a function, and does nothing.
func Ask(module, name string) []byte {
	return Module{Imports: []Import{{module, name, Nothing}}, Pages: 1, Table: -1}.Bytes()
}

// Sleep writes the text once a day of its own time is over.
func Sleep(text string) []byte {
	// One subscription to a clock, relative, of a day, as the specification lays it out; what happened is written behind it.
	day := []byte{}
	for i := range 8 {
		day = append(day, byte(int64(24*3600*1e9)>>(8*i)))
	}
	subscription := make([]byte, 48)
	copy(subscription[24:], day)
	return Module{
		Imports: []Import{WASI("poll_oneoff", FourNumbers), WASI("fd_write", FourNumbers)}, Pages: 1, Table: -1,
		Body: code(call(0, Text, 2048, 1, 8), store(0, Text+48), store(4, int32(len(text))), call(1, 1, 0, 1, 8)),
		Data: string(subscription) + text,
	}.Bytes()
}
