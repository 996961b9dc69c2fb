package app

import "time"

// modulesObserver counts what happens to installations.
type modulesObserver struct{ *metrics }

func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// Did implements engine.Observer.
func (m modulesObserver) Did(action string, took time.Duration, err error) {
	m.actions.WithLabelValues(action, result(err)).Observe(took.Seconds())
}

// Rendered implements engine.Observer.
func (m modulesObserver) Rendered(_ time.Duration, err error) {
	m.renders.WithLabelValues(result(err)).Inc()
}

// Hit implements fetch.Observer.
func (m modulesObserver) Hit() { m.downloads.WithLabelValues("cached").Inc() }

// Downloaded implements fetch.Observer.
func (m modulesObserver) Downloaded(bytes int64, err error) {
	m.downloads.WithLabelValues(result(err)).Inc()
	m.fetched.Add(float64(bytes))
}

// Held implements fetch.Observer.
func (m modulesObserver) Held(_ int, bytes int64) { m.cached.Set(float64(bytes)) }
