package testenv

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tcpListen is the state of a socket that accepts connections, as proc_net_tcp(5) writes it.
const tcpListen = "0A"

// Listening is the addresses that the process accepts TCP connections on now, in the order of their ports. Programs
// that were given port 0 tell them to nobody else.
func (m *Manager) Listening() ([]string, error) {
	proc := filepath.Join("/proc", strconv.Itoa(m.Pid()))
	mine, err := sockets(filepath.Join(proc, "fd"))
	if err != nil {
		return nil, err
	}
	var found []netip.AddrPort
	for _, table := range []string{"tcp", "tcp6"} {
		listed, err := listeners(filepath.Join(proc, "net", table), mine)
		if err != nil {
			return nil, err
		}
		found = append(found, listed...)
	}
	slices.SortFunc(found, func(a, b netip.AddrPort) int { return int(a.Port()) - int(b.Port()) })
	addresses := make([]string, 0, len(found))
	for _, address := range found {
		addresses = append(addresses, address.String())
	}
	return addresses, nil
}

// sockets are the inodes of a process's sockets.
func sockets(folder string) (map[string]bool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("list open files: %w", err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		// A file that was closed meanwhile is no socket that listens.
		target, _ := os.Readlink(filepath.Join(folder, entry.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			found[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return found, nil
}

func listeners(table string, mine map[string]bool) ([]netip.AddrPort, error) {
	file, err := os.Open(table)
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	defer func() { _ = file.Close() }()
	var found []netip.AddrPort
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 10 || fields[3] != tcpListen || !mine[fields[9]] {
			continue
		}
		address, err := parseSocket(fields[1])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", table, err)
		}
		found = append(found, address)
	}
	return found, scanner.Err()
}

// parseSocket reads ADDRESS:PORT in hexadecimal; the address is words of four bytes, each in the host's order, which is
// little endian on every machine that this runs on.
func parseSocket(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", text, err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port of %q: %w", text, err)
	}
	address, ok := netip.AddrFromSlice(net.IP(raw))
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("address %q has %d bytes", text, len(raw))
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), nil
}
