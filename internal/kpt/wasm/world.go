package wasm

import (
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// world is all that a module finds: no files, no arguments, no environment, always the same random numbers, and a clock that
// knows nothing of the time. The same input gives the same output.
func world() wazero.ModuleConfig {
	c := &clock{}
	return wazero.NewModuleConfig().WithName("").
		WithWalltime(c.wall, sys.ClockResolution(time.Microsecond)).
		WithNanotime(c.read, sys.ClockResolution(time.Microsecond)).
		WithNanosleep(c.sleep)
}

// clock begins with the year 1970, and moves when it is read and when the module sleeps; sleeping takes no time.
type clock struct{ now int64 }

func (c *clock) read() int64 {
	c.now += int64(time.Microsecond)
	return c.now
}

func (c *clock) wall() (seconds int64, nanoseconds int32) {
	now := c.read()
	return now / int64(time.Second), int32(now % int64(time.Second))
}

func (c *clock) sleep(nanoseconds int64) {
	if nanoseconds > 0 && c.now < 1<<62 {
		c.now += min(nanoseconds, 1<<61)
	}
}
