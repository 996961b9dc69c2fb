package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Names of the program's metrics.
const (
	requestsMetric = "rest_client_requests_total{"
	roundsMetric   = `controller_runtime_reconcile_total{controller="moduleinstallation"`
	servedMetric   = `sluice_artifact_requests_total{code="200",method="GET"}`
)

// metric is the sum of the samples whose lines begin so.
func (f *fleet) metric(ctx context.Context, begin string) (float64, error) {
	addresses, err := f.manager.Listening()
	if err != nil {
		return 0, err
	}
	for _, address := range addresses {
		sum, found, err := scrape(ctx, "http://"+address+"/metrics", begin)
		if err != nil {
			return 0, err
		}
		if found {
			return sum, nil
		}
	}
	return 0, fmt.Errorf("none of %v has metrics", addresses)
}

// scrape adds up samples. What has no metrics at the path is the other server of the process.
func scrape(ctx context.Context, url, begin string) (sum float64, found bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, false, err
	}
	request.Header.Set("Accept-Encoding", "identity") // Compressing would be a third of what a quick reconcile costs the program.
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, response.Body)
		return 0, false, nil
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, begin) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, false, err
		}
		sum += value
	}
	return sum, true, nil
}

// cpu is what the program has used so far.
func (f *fleet) cpu() (time.Duration, error) { return cpuOf(f.manager.Pid()) }

// cpuOf is what the threads of a process and of its children have used so far, to the nanosecond: see proc(5), schedstat.
func cpuOf(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("find the program's threads: %w", err)
	}
	total := int64(0)
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // It has ended, before or after the file was opened.
		}
		if err != nil {
			return 0, err
		}
		spent, _, _ := strings.Cut(string(content), " ")
		n, err := strconv.ParseInt(spent, 10, 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	for _, child := range children(pid) {
		spent, err := cpuOf(child)
		if err != nil {
			return 0, err
		}
		total += int64(spent)
	}
	return time.Duration(total), nil
}

// memory is the program's resident set now, and the highest that it was, in bytes.
func (f *fleet) memory() (now, peak int64) {
	return held(f.manager.Pid(), residentNow), held(f.manager.Pid(), residentMax)
}
