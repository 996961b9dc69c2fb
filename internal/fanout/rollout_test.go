package fanout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// begun is when the clock of these tests begins.
var begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// inWaves selects by the label wave, in order.
func inWaves(names ...string) *packagesv1.Rollout {
	made := &packagesv1.Rollout{}
	for _, name := range names {
		made.Waves = append(made.Waves, packagesv1.Wave{Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": name}}})
	}
	return made
}

func newRollout(t *testing.T, spec *packagesv1.Rollout) *fanout.Rollout {
	t.Helper()
	r, err := fanout.NewRollout(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openGates(int) string { return "" }

// The states of members: they are behind, have the newest revision and wait, or are published with it.
func behind(name string, wave int) fanout.Member { return fanout.Member{Name: name, Wave: wave, At: 1} }

func flying(name string, wave int) fanout.Member {
	return fanout.Member{Name: name, Wave: wave, IsCurrent: true, IsOpen: true, At: 2}
}

func done(name string, wave int) fanout.Member {
	return fanout.Member{Name: name, Wave: wave, IsCurrent: true, IsDone: true, At: 2}
}

func failing(m fanout.Member) fanout.Member { m.Failure = "Broken"; return m }
func joined(m fanout.Member) fanout.Member  { m.HasJoined = true; return m }
func newcomer(name string, wave int) fanout.Member {
	return fanout.Member{Name: name, Wave: wave, IsNew: true}
}

func TestATargetIsOfTheFirstWaveThatSelectsIt(t *testing.T) {
	t.Parallel()
	spec := inWaves("a", "b")
	spec.Waves[1].Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "wave", Operator: metav1.LabelSelectorOpExists}}}
	r := newRollout(t, spec)
	got := []int{r.Wave(map[string]string{"wave": "a"}), r.Wave(map[string]string{"wave": "c"}), r.Wave(nil)}
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
	spec.Waves[0].Selector.MatchLabels["wave"] = "not a label"
	if _, err := fanout.NewRollout(spec); err == nil || !strings.Contains(err.Error(), "spec.rollout.waves[0].selector") {
		t.Errorf("what is wrong is not named: %v", err)
	}
	spec.Waves = []packagesv1.Wave{{Name: "all"}}
	if got := newRollout(t, spec).Wave(nil); got != 0 {
		t.Errorf("a wave without a selector takes all that are left: %d", got)
	}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	two, pausedSecond, soaked := inWaves("a", "b"), inWaves("a", "b"), inWaves("a", "b")
	pausedSecond.Waves[1].Pause = true
	soaked.Waves[0].Soak = &metav1.Duration{Duration: time.Hour}
	going, narrow := inWaves("a", "b"), inWaves("a", "b")
	going.OnFailure = packagesv1.FailureContinues
	narrow.Waves[0].MaxInFlight = new(intstr.FromInt32(2))
	percent := inWaves("a")
	percent.Waves[0].MaxInFlight = new(intstr.FromString("30%"))
	for name, tc := range map[string]struct {
		reason  string
		spec    *packagesv1.Rollout
		members []fanout.Member
		done    map[string]time.Time
		gate    string
		// newest are those that are to be at the newest revision, and waves the states.
		newest, waves string
		again         time.Duration
	}{
		"First":       {"the first wave begins", two, []fanout.Member{behind("1", 0), behind("2", 1)}, nil, "", "1", "a Progressing NotPublished, b Waiting PreviousWave", 0},
		"Unpublished": {"the next waits for what is published", two, []fanout.Member{flying("1", 0), behind("2", 1)}, nil, "", "1", "a Progressing NotPublished, b Waiting PreviousWave", 0},
		"Second":      {"and follows it", two, []fanout.Member{done("1", 0), behind("2", 1)}, nil, "", "1 2", "a Done, b Progressing NotPublished", 0},
		"Done":        {"in the end nothing is left", two, []fanout.Member{done("1", 0), done("2", 1)}, nil, "", "1 2", "a Done, b Done", 0},
		"Empty":       {"a wave without targets is passed over", two, []fanout.Member{behind("2", 1)}, nil, "", "2", "a Empty, b Progressing NotPublished", 0},
		"Others":      {"what no wave selects comes last", two, []fanout.Member{done("1", 0), behind("2", 1), behind("3", 2)}, nil, "", "1 2", "a Done, b Progressing NotPublished, (others) Waiting PreviousWave", 0},
		"Paused":      {"a paused wave waits", pausedSecond, []fanout.Member{done("1", 0), behind("2", 1), behind("3", 2)}, nil, "", "1", "a Done, b Waiting Paused, (others) Waiting PreviousWave", 0},
		"PausedDone":  {"one that is done does not", pausedSecond, []fanout.Member{done("1", 0), done("2", 1)}, nil, "", "1 2", "a Done, b Done", 0},
		"Soaks":       {"the time begins when it is done", soaked, []fanout.Member{done("1", 0), behind("2", 1)}, nil, "", "1", "a Done, b Waiting Soaking", time.Hour},
		"SoaksOn":     {"and goes on", soaked, []fanout.Member{done("1", 0), behind("2", 1)}, map[string]time.Time{"a": begun.Add(-50 * time.Minute)}, "", "1", "a Done, b Waiting Soaking", 10 * time.Minute},
		"Soaked":      {"until it is over", soaked, []fanout.Member{done("1", 0), behind("2", 1)}, map[string]time.Time{"a": begun.Add(-time.Hour)}, "", "1 2", "a Done, b Progressing NotPublished", 0},
		"SoakOfNone":  {"nothing waits where nothing is left", soaked, []fanout.Member{done("1", 0), done("2", 1)}, nil, "", "1 2", "a Done, b Done", 0},
		"Gate":        {"a gate holds the next wave", two, []fanout.Member{done("1", 0), behind("2", 1)}, nil, "closed", "1", "a Done, b Waiting GateClosed", 0},
		"GateAgain":   {"also one that has begun", two, []fanout.Member{done("1", 0), flying("2", 1), behind("3", 1)}, nil, "closed", "1 2", "a Done, b Waiting GateClosed", 0},
		"GateOfNone":  {"and asks for nothing in the end", two, []fanout.Member{done("1", 0), done("2", 1)}, nil, "closed", "1 2", "a Done, b Done", 0},
		"Stays":       {"a wave that was done stays done", two, []fanout.Member{flying("1", 0), behind("2", 1)}, map[string]time.Time{"a": begun}, "", "1 2", "a Done, b Progressing NotPublished", 0},
		"DoneNoMore":  {"unless somebody of it is behind", two, []fanout.Member{behind("1", 0), behind("2", 1)}, map[string]time.Time{"a": begun}, "", "1", "a Progressing NotPublished, b Waiting PreviousWave", 0},
		"Stops":       {"one that fails stops its wave and the next", two, []fanout.Member{failing(flying("1", 0)), behind("2", 0), behind("3", 1)}, nil, "", "1", "a Failed VariantFailed, b Waiting PreviousWave", 0},
		"StopsDone":   {"also when its wave was done", two, []fanout.Member{failing(flying("1", 0)), behind("3", 1)}, map[string]time.Time{"a": begun}, "", "1", "a Failed VariantFailed, b Waiting PreviousWave", 0},
		"StopsAsNone": {"also where there is nothing to give it", two, []fanout.Member{failing(behind("1", 0)), behind("3", 1)}, nil, "", "", "a Failed VariantFailed, b Waiting PreviousWave", 0},
		"Continues":   {"unless nobody waits for it", going, []fanout.Member{failing(flying("1", 0)), done("2", 0), behind("3", 1)}, nil, "", "1 2 3", "a Done, b Progressing NotPublished", 0},
		"Narrow":      {"few are changed at once", narrow, []fanout.Member{flying("2", 0), behind("3", 0), behind("4", 0)}, nil, "", "2 3", "a Progressing NotPublished, b Empty", 0},
		"Full":        {"and no more as long as none is published", narrow, []fanout.Member{flying("1", 0), flying("2", 0), behind("3", 0)}, nil, "", "1 2", "a Progressing NotPublished, b Empty", 0},
		"OpenFirst":   {"those first that have an open change", narrow, []fanout.Member{behind("1", 0), behind("2", 0), {Name: "3", At: 1, IsOpen: true}, {Name: "4", At: 1, IsOpen: true}}, nil, "", "3 4", "a Progressing NotPublished, b Empty", 0},
		"Percent":     {"a percentage is rounded up", percent, []fanout.Member{behind("1", 0), behind("2", 0), behind("3", 0), behind("4", 0)}, nil, "", "1 2", "a Progressing NotPublished", 0},
		"Joins":       {"who comes to a wave that is done begins with the newest", two, []fanout.Member{done("1", 0), newcomer("2", 0), behind("3", 1)}, nil, "", "1 2 3", "a Done, b Progressing NotPublished", 0},
		"JoinsBehind": {"who comes to one that waits, with what that is at", two, []fanout.Member{flying("1", 0), behind("2", 1), newcomer("3", 1)}, nil, "", "1 3@1", "a Progressing NotPublished, b Waiting PreviousWave", 0},
		"JoinsOldest": {"of two revisions, with the one that the whole wave has been at", two, []fanout.Member{flying("1", 0), behind("2", 1), {Name: "3", Wave: 1, At: 2}, newcomer("4", 1)}, nil, "", "1 4@1", "a Progressing NotPublished, b Waiting PreviousWave", 0},
		"JoinsEmpty":  {"in a wave without others, with what the others are at", two, []fanout.Member{flying("1", 0), newcomer("2", 1), behind("3", 2)}, nil, "", "1 2@1", "a Progressing NotPublished, b Waiting PreviousWave, (others) Waiting PreviousWave", 0},
		"JoinsPaused": {"and so in one that is paused", pausedSecond, []fanout.Member{done("1", 0), newcomer("2", 1), behind("3", 2)}, nil, "", "1 2@1", "a Done, b Waiting Paused, (others) Waiting PreviousWave", 0},
		"AllJoin":     {"the first revision reaches all", two, []fanout.Member{newcomer("1", 0), newcomer("2", 1)}, nil, "", "1 2", "a Done, b Done", 0},
		"Joined":      {"nobody waits for who has joined", two, []fanout.Member{done("1", 0), joined(failing(flying("2", 0))), behind("3", 1)}, nil, "", "1 2 3", "a Done, b Progressing NotPublished", 0},
		"Free":        {"who was never held is not held back", two, []fanout.Member{behind("1", 0), {Name: "2", Wave: 1, IsFree: true}}, nil, "", "1 2", "a Progressing NotPublished, b Done", 0},
		"Unknown":     {"who is at nobody knows what waits as well", two, []fanout.Member{flying("1", 0), {Name: "2", Wave: 1}}, nil, "", "1", "a Progressing NotPublished, b Waiting PreviousWave", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRollout(t, tc.spec)
			p := r.Plan(fanout.Moment{Members: tc.members, Done: tc.done, Gate: func(int) string { return tc.gate }, Now: begun})
			var newest, waves []string
			for i, m := range tc.members {
				if p.Newest[i] {
					newest = append(newest, m.Name)
				} else if m.IsNew {
					newest = append(newest, fmt.Sprintf("%s@%d", m.Name, p.At[i]))
				}
			}
			for _, w := range p.Waves {
				waves = append(waves, strings.TrimSpace(fmt.Sprintf("%s %s %s", w.Name, w.State, w.Reason)))
			}
			got := []string{strings.Join(newest, " "), strings.Join(waves, ", "), p.Again.String()}
			if diff := cmp.Diff([]string{tc.newest, tc.waves, tc.again.String()}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if isStopped := strings.Contains(tc.waves, "Failed"); p.IsStopped != isStopped || isStopped != strings.Contains(p.Waits, "such as 1: Broken") {
				t.Errorf("%s: stopped is %t: %s", tc.reason, p.IsStopped, p.Waits)
			}
		})
	}
}

// world is a rollout that is carried out: what variants are at is what a plan has said before.
type world struct {
	t       *testing.T
	random  *rand.Rand
	spec    *packagesv1.Rollout
	rollout *fanout.Rollout
	members []fanout.Member
	newest  int64
	done    map[string]time.Time
	now     time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), newest: 1, now: begun}
	w.spec = inWaves("a", "b", "c", "d")
	for i := range w.spec.Waves {
		switch w.random.IntN(4) {
		case 0:
			w.spec.Waves[i].MaxInFlight = new(intstr.FromInt32(1 + w.random.Int32N(3)))
		case 1:
			w.spec.Waves[i].MaxInFlight = new(intstr.FromString(fmt.Sprintf("%d%%", 1+w.random.IntN(100))))
		case 2:
			w.spec.Waves[i].Soak = &metav1.Duration{Duration: time.Duration(w.random.IntN(90)) * time.Minute}
		}
	}
	w.rollout = newRollout(t, w.spec)
	for range w.random.IntN(25) {
		w.arrive()
	}
	return w
}

func (w *world) arrive() {
	w.members = append(w.members, newcomer(fmt.Sprintf("m%d", len(w.members)), w.random.IntN(5)))
}

// revise makes something newer than all that is there.
func (w *world) revise() {
	w.newest++
	w.done = nil
	for i := range w.members {
		w.members[i].IsCurrent, w.members[i].IsDone, w.members[i].HasJoined = false, false, false
	}
}

// plan asks for a decision twice, in different orders.
func (w *world) plan() fanout.Plan {
	p := w.rollout.Plan(fanout.Moment{Members: w.members, Done: w.done, Gate: openGates, Now: w.now})
	order := w.random.Perm(len(w.members))
	shuffled := make([]fanout.Member, len(order))
	for to, from := range order {
		shuffled[to] = w.members[from]
	}
	other := w.rollout.Plan(fanout.Moment{Members: shuffled, Done: w.done, Gate: openGates, Now: w.now})
	for to, from := range order {
		if other.Newest[to] != p.Newest[from] || other.At[to] != p.At[from] {
			w.t.Fatalf("the order decides about %s", shuffled[to].Name)
		}
	}
	if diff := cmp.Diff(p.Waves, other.Waves); diff != "" || other.Waits != p.Waits {
		w.t.Fatalf("the order decides about the waves: %s", diff)
	}
	return p
}

// step carries out a plan, which may not break any rule.
func (w *world) step() fanout.Plan {
	p := w.plan()
	var size, inFlight [5]int
	first := 5 // The first wave that is not through.
	for i, m := range w.members {
		if m.IsNew || m.IsCurrent && m.HasJoined {
			continue
		}
		size[m.Wave]++
		if p.Newest[i] && !m.IsDone {
			if inFlight[m.Wave]++; p.Waves != nil && w.isDone(m.Wave) {
				inFlight[m.Wave]-- // What people begin in a wave that was done is theirs.
			}
		}
		if !m.IsCurrent || !m.IsDone && !w.isDone(m.Wave) {
			first = min(first, m.Wave)
		}
	}
	for i, m := range w.members {
		if p.Newest[i] && !m.IsNew && !m.IsCurrent && m.Wave > first {
			w.t.Fatalf("%s of wave %d goes ahead of wave %d", m.Name, m.Wave, first)
		}
	}
	for wave, is := range inFlight[:4] {
		if most := w.spec.Waves[wave].InFlight(size[wave]); is > most {
			w.t.Fatalf("%d variants of wave %d are changed at once, and may be %d", is, wave, most)
		}
	}
	for i := range w.members {
		w.apply(&w.members[i], p.Newest[i], p.At[i])
	}
	w.done = maps.Clone(p.Done)
	return p
}

func (w *world) isDone(wave int) bool {
	if wave >= len(w.spec.Waves) {
		_, was := w.done[fanout.Others]
		return was
	}
	_, was := w.done[w.spec.Waves[wave].Name]
	return was
}

func (w *world) apply(m *fanout.Member, newest bool, at int64) {
	switch {
	case newest && !m.IsCurrent:
		m.HasJoined, m.IsNew, m.IsCurrent, m.IsOpen, m.At = m.IsNew, false, true, true, w.newest
	case m.IsNew:
		m.IsNew, m.IsOpen, m.At = false, true, at
		if at < 1 || at >= w.newest {
			w.t.Fatalf("%s begins at revision %d of %d", m.Name, at, w.newest)
		}
	case w.random.IntN(3) == 0: // It is approved.
		m.IsOpen, m.IsDone = false, m.IsCurrent
	}
}

// TestRolloutsKeepTheirRules: the order of targets is irrelevant, no more are changed at once than may be, no wave goes ahead of one
// that is not done, and all come to an end, whatever comes in between.
func TestRolloutsKeepTheirRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		w := newWorld(t, seed)
		for range 60 {
			switch w.random.IntN(12) {
			case 0:
				w.revise()
			case 1:
				w.arrive()
			}
			w.now = w.now.Add(time.Duration(w.random.IntN(20)) * time.Minute)
			w.step()
		}
		steps := 0
		for p := w.step(); p.Waits != ""; p = w.step() {
			if w.now = w.now.Add(max(p.Again, time.Second)); steps > 2000 {
				t.Fatalf("seed %d: it does not end: %s", seed, p.Waits)
			}
			steps++
		}
		for _, m := range w.members {
			if !m.IsCurrent {
				t.Fatalf("seed %d: %s is not at the newest revision", seed, m.Name)
			}
		}
	}
}

// TestNothingMovesBehindAFailure: as long as a variant fails, nothing of its wave or a later one takes the revision.
func TestNothingMovesBehindAFailure(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		w.step()
		w.revise()
		for range 30 {
			w.step()
			w.now = w.now.Add(time.Hour)
			fails := 5
			for i := range w.members {
				if m := &w.members[i]; m.IsCurrent && !m.HasJoined && w.random.IntN(20) == 0 {
					m.Failure = "Broken"
				}
				if w.members[i].Failure != "" {
					fails = min(fails, w.members[i].Wave)
				}
			}
			p := w.plan()
			if (fails < 5) != p.IsStopped {
				t.Fatalf("seed %d: stopped is %t: %s", seed, p.IsStopped, p.Waits)
			}
			for i, m := range w.members {
				if p.Newest[i] && !m.IsCurrent && m.Wave >= fails {
					t.Fatalf("seed %d: %s takes what fails in wave %d", seed, m.Name, fails)
				}
			}
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	r, err := fanout.NewRollout(inWaves("a", "b", "c"))
	if err != nil {
		b.Fatal(err)
	}
	var members []fanout.Member
	for i := range 10_000 {
		members = append(members, behind(fmt.Sprintf("PackageVariant web.cluster-%d.web-0123456789", i), i%3))
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Plan(fanout.Moment{Members: members, Gate: openGates, Now: begun})
	}
}
