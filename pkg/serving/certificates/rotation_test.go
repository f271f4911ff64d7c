// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// lag is how late API servers may be with a bundle without losing the server.
const lag = 9 * time.Second

// history is what bundles were, and until when.
type history struct {
	bundles [2]string
	until   time.Time
}

// world is two replicas of which one leads, and what API servers may have taken in of their bundles.
type world struct {
	*cluster
	random   *rand.Rand
	replicas [2]*replica
	leading  int
	// blind says that bundles cannot be read for now. A certificate waits some minutes for that and no longer.
	blind bool
	past  []history
	log   []string
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{cluster: newCluster(t), random: rand.New(rand.NewPCG(seed, 0))}
	for index := range w.replicas {
		w.replicas[index] = w.start(t, nil)
	}
	return w
}

// note keeps what bundles are now.
func (w *world) note(t *testing.T) {
	t.Helper()
	now := history{bundles: w.bundles(t), until: w.clock.Now()}
	if last := len(w.past) - 1; last >= 0 && w.past[last].bundles == now.bundles {
		w.past[last] = now
		return
	}
	w.past = append(w.past, now)
}

// check fails unless every client that has ever trusted a replica does, however late it is.
func (w *world) check(t *testing.T) {
	t.Helper()
	now := w.clock.Now()
	w.note(t)
	for index, each := range w.replicas {
		trusted := true
		for age := len(w.past) - 1; age >= 0; age-- {
			if age < len(w.past)-1 && now.Sub(w.past[age].until) > lag {
				break
			}
			for place, bundle := range w.past[age].bundles {
				if err := each.trusted(t, bundle, now); err != nil {
					trusted = false
					if each.covered {
						t.Fatalf("replica %d is refused by place %d, %v late: %v\n%s", index, place, now.Sub(w.past[age].until), err,
							strings.Join(w.log[max(0, len(w.log)-25):], "\n"))
					}
				}
			}
		}
		each.covered = each.covered || trusted
	}
}

// step is something that happens.
func (w *world) step(t *testing.T) {
	t.Helper()
	index := w.random.IntN(2)
	switch w.random.IntN(40) {
	case 0:
		w.say("delete the Secret")
		w.put(t, secretPath, nil)
	case 1:
		w.say("empty the Secret")
		w.putSecret(t, nil, nil)
	case 2:
		w.say("garbage in the Secret")
		w.putSecret(t, []byte("garbage"), []byte("garbage"))
	case 3:
		w.say("an authority by hand")
		by := newIssuer(t, w.clock.Now(), 1000*time.Hour)
		w.putSecret(t, by.certificates, by.key)
	case 4:
		w.say("replica %d starts again", index)
		w.replicas[index] = w.start(t, nil)
	case 5:
		w.leading = index
		w.say("replica %d leads", index)
	case 6, 7, 8:
		w.dies(t, index)
	case 9:
		refused := []string{apiServicePath, webhookPath, secretPath}[w.random.IntN(3)]
		method := []string{http.MethodGet, http.MethodPut, http.MethodPost}[w.random.IntN(3)]
		w.say("no %s of %s", method, refused)
		w.blind = method == http.MethodGet && refused != secretPath
		w.setRefuse(func(m, path string) (int, bool) {
			if m == method && strings.HasPrefix(refused, path) {
				return http.StatusForbidden, false
			}
			return 0, false
		})
	case 10, 11, 12, 13:
		w.say("everything is allowed")
		w.setRefuse(nil)
	default:
		w.passes(t)
	}
}

// passes lets time pass, in which most replicas look.
func (w *world) passes(t *testing.T) {
	t.Helper()
	pause := []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 11 * time.Second, time.Hour}[w.random.IntN(5)]
	if pause == time.Hour && w.blind {
		w.setRefuse(nil)
	}
	w.note(t)
	w.clock.Step(pause)
	w.say("%v later", pause)
	for index := range w.replicas {
		if pause == time.Hour || w.random.IntN(4) > 0 {
			w.look(t, index)
		}
	}
}

// look lets a replica do what is due.
func (w *world) look(t *testing.T, index int) {
	t.Helper()
	w.say("replica %d looks", index)
	if err := w.replicas[index].controller.RunOnce(quiet(t)); err != nil {
		t.Fatal(err)
	}
	w.check(t)
	if w.leading == index {
		w.replicas[index].leader.RunOnce(quiet(t))
		w.check(t)
	}
}

// dies lets a replica get as far as one of its requests. It may or may not have been carried out.
func (w *world) dies(t *testing.T, index int) {
	t.Helper()
	left, lost := w.random.IntN(8), w.random.IntN(2) == 0
	w.say("replica %d dies after %d requests, answer lost: %v", index, left, lost)
	w.setRefuse(func(string, string) (int, bool) {
		left--
		switch {
		case left > 0:
			return 0, false
		case left == 0:
			return http.StatusInternalServerError, lost
		}
		return http.StatusInternalServerError, false
	})
	each := w.replicas[index]
	_ = each.controller.RunOnce(quiet(t)) // it dies anyway
	if w.leading == index {
		each.leader.RunOnce(quiet(t))
	}
	w.setRefuse(nil)
	w.replicas[index] = w.start(t, nil)
	w.check(t)
}

func (w *world) say(format string, arguments ...any) {
	w.log = append(w.log, fmt.Sprintf(format, arguments...))
}

// TestRotationKeepsTrust checks that after any order of events a client that has trusted a replica trusts it for as
// long as that runs. Once no request fails any more, all replicas use the authority in the Secret, and no client trusts
// another one.
func TestRotationKeepsTrust(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			w.check(t)
			for range 150 {
				w.step(t)
				w.check(t)
			}
			w.calmsDown(t)
		})
	}
}

// calmsDown takes away what is in the way.
func (w *world) calmsDown(t *testing.T) {
	t.Helper()
	w.setRefuse(nil)
	if strings.Contains(w.secret(t, "tls.crt"), "garbage") {
		w.put(t, secretPath, nil)
	}
	for range 13 {
		w.clock.Step(time.Hour)
		for index := range w.replicas {
			w.look(t, index)
		}
		for range 3 {
			w.note(t)
			w.clock.Step(5 * time.Second)
			w.look(t, 0)
			w.look(t, 1)
		}
	}
	authority := w.secret(t, "tls.crt")
	for index, each := range w.replicas {
		if err := each.trusted(t, authority, w.clock.Now()); err != nil {
			t.Errorf("replica %d does not show a certificate of the authority in the Secret: %v", index, err)
		}
	}
	for place, bundle := range w.bundles(t) {
		if count := strings.Count(bundle, "BEGIN"); count > 2 || !strings.Contains(bundle, authority) {
			t.Errorf("place %d trusts %d authorities, that in the Secret among them: %v", place, count, strings.Contains(bundle, authority))
		}
	}
}
