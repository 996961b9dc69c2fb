package wasm

// reader reads a module's numbers and names. Once something is not there, it is broken, and gives nothing more.
type reader struct {
	rest   []byte
	broken bool
}

func (r *reader) take(n int64) []byte {
	if r.broken || n > int64(len(r.rest)) {
		r.rest, r.broken = nil, true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if one := r.take(1); one != nil {
		return one[0]
	}
	return 0
}

// number reads one of 32 bits, which has five bytes at most.
func (r *reader) number() uint32 {
	value := uint64(0)
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		value |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
		r.broken = r.broken || shift == 28
	}
	r.broken = r.broken || value > 1<<32-1
	return uint32(value)
}

func (r *reader) text() string { return string(r.take(int64(r.number()))) }

// count reads how many entries follow, each of which has a byte at least. Whoever reads a module after this makes room for as many
// as it says, before looking at the first.
func (r *reader) count(most uint32) uint32 {
	n := r.number()
	if int64(n) > int64(len(r.rest)) || n > most {
		r.broken = true
		return 0
	}
	return n
}

// skip leaves out so many numbers, of any length up to 64 bits.
func (r *reader) skip(numbers int) {
	for ; numbers > 0; numbers-- {
		for length := 0; r.byte()&0x80 != 0 && !r.broken; length++ {
			r.broken = r.broken || length > 10
		}
	}
}

// expression leaves out one that is known before the module runs: a constant, a global variable or a function.
func (r *reader) expression() {
	for !r.broken {
		switch r.byte() {
		case 0x0b: // end
			return
		case 0x41, 0x42, 0x23, 0xd2: // i32.const, i64.const, global.get, ref.func
			r.skip(1)
		case 0x43: // f32.const
			r.take(4)
		case 0x44: // f64.const
			r.take(8)
		case 0xd0: // ref.null
			r.byte()
		case 0xfd: // v128.const
			r.broken = r.number() != 12 || r.broken
			r.take(16)
		default:
			r.broken = true
		}
	}
}
