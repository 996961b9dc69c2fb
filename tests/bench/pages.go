package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	applies "sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// opened is the program that serves the pages, and somebody who has opened them.
type opened struct {
	process *exec.Cmd
	client  *http.Client
	tab     context.Context
	leave   func()
	base    string
}

// The figures that pages are held to.
const (
	largestList, largestGraph = 150 << 10, 200 << 10
	longestSearch             = 100 * time.Millisecond
	longestChange             = time.Second
	mostMemory                = 200 << 20
	mostRequests, mostBoxes   = 12, 150
	mostPaint                 = 1.5
	// looks is how often a page is opened to be timed, and few how many objects a page has that others are held against.
	looks = 7
	few   = 10
)

// open starts the program, and opens what it prints in a browser, and once more without one.
func (s *commandsSite) open(ctx context.Context) (*opened, error) {
	made := &opened{process: s.command(ctx, s.sluice, "ui", "--listen", "127.0.0.1:0")}
	made.process.Stderr = io.Discard
	made.process.Cancel = func() error { return made.process.Process.Signal(syscall.SIGINT) }
	printed, err := made.process.StdoutPipe()
	if err == nil {
		err = made.process.Start()
	}
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, made.process.Wait())
	}
	allocated, stop := chromedp.NewExecAllocator(ctx, chromedp.ExecPath("chromium-headless-shell"), chromedp.NoSandbox, chromedp.Headless)
	tab, leave := chromedp.NewContext(allocated)
	made.tab, made.leave = tab, func() { leave(); stop() }
	if err := chromedp.Do(tab, chromedp.Navigate(strings.TrimSpace(line))); err != nil {
		return nil, err
	}
	if made.base, err = chromedp.Run(tab, chromedp.Location()); err != nil {
		return nil, err
	}
	// The cookie is the browser's; whoever asks without one takes it over.
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	made.client = &http.Client{Jar: jar}
	return made, made.takeCookie()
}

func (p *opened) takeCookie() error {
	found, err := chromedp.Call(p.tab, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		return err
	}
	at, err := url.Parse(p.base)
	if err != nil {
		return err
	}
	for _, cookie := range found.Cookies {
		p.client.Jar.SetCookies(at, []*http.Cookie{{Name: cookie.Name, Value: cookie.Value, Path: cookie.Path}})
	}
	return nil
}

// end ends both.
func (p *opened) end() error {
	p.leave()
	err := p.process.Process.Signal(syscall.SIGINT)
	return errors.Join(err, p.process.Wait())
}

// paint is how long Chromium takes from the request to the first content of a page, and how much of that it does by itself once it has the
// page: the medians.
func (p *opened) paint(page string) (whole, own time.Duration, requests int, err error) {
	var wholes, owns []int64
	for range looks {
		if err := chromedp.Do(p.tab, chromedp.Navigate(p.base+page)); err != nil {
			return 0, 0, 0, err
		}
		figures, err := chromedp.Run(p.tab, chromedp.Poll[[]float64](`(() => {
			const paint = performance.getEntriesByName('first-contentful-paint')[0];
			const page = performance.getEntriesByType('navigation')[0];
			return paint && page.responseEnd && [paint.startTime, paint.startTime - page.responseEnd, 1 + performance.getEntriesByType('resource').length];
		})()`))
		if err != nil {
			return 0, 0, 0, err
		}
		wholes, owns, requests = append(wholes, int64(figures[0]*1e6)), append(owns, int64(figures[1]*1e6)), int(figures[2])
	}
	return time.Duration(median(wholes)), time.Duration(median(owns)), requests, nil
}

// get reads a page, and gives its size and how long it took.
func (p *opened) get(ctx context.Context, page string) (body []byte, took time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+page, nil)
	if err != nil {
		return nil, 0, err
	}
	begun := time.Now()
	response, err := p.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", page, response.Status, body)
	}
	return body, time.Since(begun), err
}

// until waits until a page says something.
func (p *opened) until(ctx context.Context, page, text string) error {
	for {
		body, _, err := p.get(ctx, page)
		if err != nil || bytes.Contains(body, []byte(text)) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pagesOfFew paints pages of few objects, for pages of many to be held against.
func (s *commandsSite) pagesOfFew(ctx context.Context, _ plan) (_ []target, err error) {
	if err := s.installations(ctx, "few", few); err != nil {
		return nil, err
	}
	if err := s.members(ctx, "few-0", 100); err != nil {
		return nil, err
	}
	p, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.until(ctx, "installations", fmt.Sprint(few, " found")); err != nil {
		return nil, err
	}
	if s.paintedFew, _, _, err = p.paint("installations"); err != nil {
		return nil, err
	}
	_, s.drawnFew, _, err = p.paint(graphOf("few-0"))
	return nil, err
}

func graphOf(name string) string {
	return "o/" + modulesv1.GroupVersion.Group + "/" + modulesv1.ModuleInstallationKind + "/" + commandsTeam + "/" + name + "/graph"
}

// pagesOfMany measures the pages of all objects that there are by then.
func (s *commandsSite) pagesOfMany(ctx context.Context, plan plan) (targets []target, err error) {
	if err := s.members(ctx, "few-1", plan.commands.members); err != nil {
		return nil, err
	}
	p, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	objects := max(plan.commands.moved, plan.commands.listed)
	if err := p.until(ctx, "installations", fmt.Sprint(objects, " found")); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, extent, *opened) ([]target, error){s.tables, s.drawing, s.streams} {
		found, err := part(ctx, extent{objects, plan.commands.members, plan.commands.streams}, p)
		if err != nil {
			return nil, err
		}
		targets = append(targets, found...)
	}
	return targets, nil
}

// extent is what there is of everything.
type extent struct{ objects, members, streams int }

func (s *commandsSite) tables(ctx context.Context, of extent, p *opened) ([]target, error) {
	painted, _, requests, err := p.paint("installations")
	if err != nil {
		return nil, err
	}
	list, _, err := p.get(ctx, "installations")
	if err != nil {
		return nil, err
	}
	var searched []int64
	for i := range looks {
		_, took, err := p.get(ctx, fmt.Sprintf("installations?q=d-%d", i))
		if err != nil {
			return nil, err
		}
		searched = append(searched, int64(took))
	}
	search, name := time.Duration(median(searched)), fmt.Sprintf("page of %d installations", of.objects)
	return []target{
		paintTarget(name+", first content", painted, s.paintedFew, "10"),
		{name, "at most 150 KB", bytesText(int64(len(list))), judge(len(list) <= largestList)},
		{name + ", search at the server", "at most 100 ms", fmt.Sprintf("%.1f ms", search.Seconds()*1e3), judge(search <= longestSearch)},
		{name + ", with its files", "at most 12 requests", fmt.Sprint(requests), judge(requests <= mostRequests)},
	}, nil
}

func paintTarget(work string, ours, theirs time.Duration, beside string) target {
	ratio := float64(ours) / float64(theirs)
	return target{work, "at most 1.5 of that of " + beside, fmt.Sprintf("%.2f: %.0f ms and %.0f ms", ratio, ours.Seconds()*1e3, theirs.Seconds()*1e3), judge(ratio <= mostPaint)}
}

func (s *commandsSite) drawing(ctx context.Context, of extent, p *opened) ([]target, error) {
	_, drawn, _, err := p.paint(graphOf("few-1"))
	if err != nil {
		return nil, err
	}
	page, _, err := p.get(ctx, graphOf("few-1"))
	if err != nil {
		return nil, err
	}
	name, boxes := fmt.Sprintf("graph of %d members", of.members), bytes.Count(page, []byte("<rect"))
	return []target{
		{name, "at most 150 boxes", fmt.Sprint(boxes), judge(boxes <= mostBoxes && boxes > 2)},
		{name, "at most 200 KB", bytesText(int64(len(page))), judge(len(page) <= largestGraph)},
		paintTarget(name+", once the page is there", drawn, s.drawnFew, "100 members"),
	}, nil
}

// streams opens many, and looks at what they cost, and when they tell of a change.
func (s *commandsSite) streams(ctx context.Context, of extent, p *opened) ([]target, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	// The drawing that was looked at last has watches of its own, which begin a while after it.
	if err := chromedp.Do(p.tab, chromedp.Navigate("about:blank")); err != nil {
		return nil, fmt.Errorf("leave the page: %w", err)
	}
	told := make(chan time.Time, of.streams)
	for range of.streams {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"live?page="+url.QueryEscape("installations?q=few-2"), nil)
		if err != nil {
			return nil, err
		}
		response, err := p.client.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("a stream answers %s", response.Status)
		}
		go func() {
			lines := bufio.NewScanner(response.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "event: ") {
					told <- time.Now()
					return
				}
			}
		}()
	}
	before, err := s.env.Requests(commandsUser)
	if err != nil {
		return nil, err
	}
	const quiet = 10 * time.Second
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(quiet):
	}
	after, err := s.env.Requests(commandsUser)
	if err != nil {
		return nil, err
	}
	// Whether all may still be read is asked twice a minute, by lists of one object.
	idle := len(slices.DeleteFunc(after[len(before):], func(r testenv.Request) bool { return r.Verb == "list" && strings.Contains(r.URI, "limit=1") }))
	memory := held(p.process.Process.Pid, residentNow)
	obj := &modulesv1.ModuleInstallation{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: commandsTeam, Name: "few-2"}, obj); err != nil {
		return nil, err
	}
	obj.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: modulesv1.InstalledReason, LastTransitionTime: metav1.Now()}}
	if err := s.client.Status().Update(ctx, obj); err != nil {
		return nil, err
	}
	begun := time.Now()
	last := begun
	for range of.streams {
		select {
		case at := <-told:
			last = at
		case <-time.After(30 * time.Second):
			return nil, errors.New("a stream does not tell of a change")
		}
	}
	name := fmt.Sprintf("%d installations, %d streams", of.objects, of.streams)
	return []target{
		{name, "at most 200 MiB", bytesText(memory), judge(memory > 0 && memory <= mostMemory)},
		{name + ", nothing new", "0 requests in 10 s, but about rights", fmt.Sprint(idle), judge(idle == 0)},
		{name + ", told of a change", "at most 1 s", fmt.Sprintf("%.0f ms", last.Sub(begun).Seconds()*1e3), judge(last.Sub(begun) <= longestChange)},
	}, nil
}

// members gives an installation so many ConfigMaps, as if it had applied them.
func (s *commandsSite) members(ctx context.Context, name string, count int) error {
	obj := &modulesv1.ModuleInstallation{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: commandsTeam, Name: name}, obj); err != nil {
		return err
	}
	labels := map[string]string{applies.Label: applies.InstallationID(name, commandsTeam)}
	for i := range count {
		member := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: commandsTeam, Name: fmt.Sprintf("%s-member-%d", name, i), Labels: labels}}
		if err := s.client.Create(ctx, member); err != nil {
			return err
		}
	}
	obj.Status.Inventory = &modulesv1.InventoryReference{Contents: []modulesv1.InventoryContent{{Version: "v1", Kind: "ConfigMap", Namespaces: []string{commandsTeam}, Count: int32(count)}}}
	return s.client.Status().Update(ctx, obj)
}
