// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

func TestPushAfterRefresh(t *testing.T) {
	transports(t, func(t *testing.T, r repository, url string) {
		w := r.clone()
		w.first("theirs/a", "a\n")
		branch := load(t, newRemote(t, url), gitrepo.Options{})
		w.write("theirs/b", "b\n")
		theirs := w.push("second")

		stage(t, branch, set("ours.yaml", "ours\n"))
		accepted, err := branch.Push(t.Context())
		if !errors.Is(err, gitrepo.ErrMoved) || len(accepted) != 0 {
			t.Fatalf("accepted %v, error %v; want ErrMoved", accepted, err)
		}
		if _, found := branch.Snapshot().Lookup("ours.yaml"); found {
			t.Error("snapshot has the file of the rejected push")
		}
		if err := branch.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if branch.Tip().String() != theirs {
			t.Errorf("tip %s, want %s", branch.Tip(), theirs)
		}
		stage(t, branch, set("ours.yaml", "ours\n"))
		push(t, branch)
		if got := r.git("ls-tree", "-r", "--name-only", "main"); got != "ours.yaml\ntheirs/a\ntheirs/b\n" {
			t.Errorf("files: %q", got)
		}
		if got := strings.TrimSpace(r.git("rev-list", "--count", "main")); got != "3" {
			t.Errorf("%s commits", got)
		}
		r.fsck()
	})
}

// TestConcurrentWriters has several writers push to one branch until all their commits are accepted.
func TestConcurrentWriters(t *testing.T) {
	const writers, rounds = 3, 8
	r := newRepository(t)
	url := r.serve(plain)
	var moved atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	for writer := range writers {
		group.Go(func() error {
			remote := newRemote(t, url)
			branch, err := gitrepo.Load(ctx, remote, "main", gitrepo.Options{})
			if err != nil {
				return err
			}
			for round := range rounds {
				content := strconv.Itoa(round)
				if err := pushWithRetry(ctx, branch, &moved, set(fmt.Sprintf("writer%d/shared", writer), content)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(r.git("rev-list", "--count", "main")); got != strconv.Itoa(writers*rounds) {
		t.Errorf("%s commits, want %d", got, writers*rounds)
	}
	if got := r.git("rev-list", "--min-parents=2", "main"); got != "" {
		t.Errorf("merge commits: %s", got)
	}
	r.fsck()
	t.Logf("the branch had moved %d times", moved.Load())
}

// pushWithRetry pushes a change and retries it on top of the commits that others have pushed.
func pushWithRetry(ctx context.Context, branch *gitrepo.Branch, moved *atomic.Int64, change gitrepo.Change) error {
	for {
		if _, committed, err := branch.Stage(commitOf("race", change)); err != nil || !committed {
			return fmt.Errorf("stage: committed %v: %w", committed, err)
		}
		_, err := branch.Push(ctx)
		if !errors.Is(err, gitrepo.ErrMoved) {
			return err
		}
		moved.Add(1)
		if err := branch.Refresh(ctx); err != nil {
			return err
		}
	}
}

// TestCompareAndSwapOnTheServer has another writer push between the advertisement and the push, which only the server can
// detect.
func TestCompareAndSwapOnTheServer(t *testing.T) {
	r := newRepository(t)
	w := r.clone()
	w.first("a", "a\n")
	w.write("b", "b\n")
	var once sync.Once
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "git-receive-pack") {
				once.Do(func() { w.push("in between") })
			}
			next.ServeHTTP(response, request)
		})
	})
	branch := load(t, newRemote(t, url), gitrepo.Options{})
	stage(t, branch, set("ours", "ours\n"))
	if _, err := branch.Push(t.Context()); !errors.Is(err, gitrepo.ErrMoved) {
		t.Fatalf("error %v, want ErrMoved", err)
	}
	if got := r.git("ls-tree", "--name-only", "main"); got != "a\nb\n" {
		t.Errorf("files: %q", got)
	}
}

// TestPushThatArrivesTwice has a proxy send the push again, so that the server rejects what it has accepted before.
func TestPushThatArrivesTwice(t *testing.T) {
	r := newRepository(t)
	r.clone().first("a", "a\n")
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "git-receive-pack") {
				body, err := io.ReadAll(request.Body)
				if err != nil {
					t.Error(err)
				}
				first := request.Clone(request.Context())
				first.Body, request.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
				next.ServeHTTP(httptest.NewRecorder(), first)
			}
			next.ServeHTTP(response, request)
		})
	})
	branch := load(t, newRemote(t, url), gitrepo.Options{})
	for i := range 3 {
		commit := stage(t, branch, set("ours", strconv.Itoa(i)))
		if accepted, err := branch.Push(t.Context()); err != nil || len(accepted) != 1 || branch.Tip() != commit {
			t.Fatalf("push %d: accepted %v, tip %s, error %v; want %s", i, accepted, branch.Tip(), err, commit)
		}
	}
	r.fsck()
}

func TestRefresh(t *testing.T) {
	for name, filter := range map[string]string{"filter": "true", "no filter": "false"} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.git("config", "uploadpack.allowFilter", filter)
			w := r.clone()
			for i := range 50 {
				w.write(fmt.Sprintf("d%d/e/f.yaml", i), strconv.Itoa(i))
			}
			w.push("first")
			branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
			before := branch.Snapshot()

			t.Run("nothing new", func(t *testing.T) { refreshed(t, r, branch) })
			w.write("d7/e/f.yaml", "changed")
			w.git("mv", "d1", "moved")
			w.git("rm", "-r", "--quiet", "d2")
			w.push("second")
			t.Run("changed, moved and removed", func(t *testing.T) { refreshed(t, r, branch) })
			w.git("revert", "--no-edit", "HEAD")
			w.git("push", "--quiet", "origin", "HEAD:main")
			t.Run("reverted", func(t *testing.T) { refreshed(t, r, branch) })
			w.git("checkout", "--quiet", "--orphan", "rewritten")
			w.write("new", "history\n")
			w.git("add", "--all")
			w.git("commit", "--quiet", "--message", "rewritten")
			w.git("push", "--quiet", "--force", "origin", "HEAD:main")
			t.Run("history rewritten", func(t *testing.T) { refreshed(t, r, branch) })
			w.git("push", "--quiet", "origin", "HEAD:other")
			r.git("update-ref", "-d", "refs/heads/main")
			t.Run("branch deleted", func(t *testing.T) {
				if err := branch.Refresh(t.Context()); err != nil || !branch.Tip().IsZero() || branch.Snapshot().Len("") != 0 {
					t.Errorf("error %v, tip %s", err, branch.Tip())
				}
			})
			if before.Len("") != 50 {
				t.Errorf("previous snapshot has %d files", before.Len(""))
			}
		})
	}
}

// refreshed refreshes the branch and compares it with the repository.
func refreshed(t *testing.T, r repository, branch *gitrepo.Branch) {
	t.Helper()
	if err := branch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := branch.Tip().String(), strings.TrimSpace(r.git("rev-parse", "main")); got != want {
		t.Errorf("tip %s, want %s", got, want)
	}
	var got []string
	_ = branch.Snapshot().Walk("", func(path string, hash gitrepo.Hash) error {
		got = append(got, hash.String()+" "+path)
		return nil
	})
	listed := strings.TrimSpace(r.git("ls-tree", "-r", "--format=%(objectname) %(path)", "main"))
	if diff := cmp.Diff(strings.Split(listed, "\n"), got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestLoadWithoutFilter loads a repository, packed with deltas, from a server that cannot omit blobs.
func TestLoadWithoutFilter(t *testing.T) {
	r := newRepository(t)
	r.git("config", "uploadpack.allowFilter", "false")
	w := r.clone()
	for i := range 300 {
		w.write(fmt.Sprintf("flat/%03d.yaml", i), strings.Repeat("content\n", 200)+strconv.Itoa(i))
	}
	w.push("first")
	w.write("flat/000.yaml", "changed")
	w.push("second")
	r.git("gc", "--quiet")
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	refreshed(t, r, branch)
	if got := branch.Snapshot().Len("flat/"); got != 300 {
		t.Errorf("%d files", got)
	}
}

func TestLostResponse(t *testing.T) {
	r := newRepository(t)
	var lose atomic.Bool
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if lose.Load() && request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "git-receive-pack") {
				next.ServeHTTP(httptest.NewRecorder(), request)
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(response, request)
		})
	})
	branch := load(t, newRemote(t, url), gitrepo.Options{})
	first := stage(t, branch, set("a", "a"))
	push(t, branch)
	lose.Store(true)
	second := stage(t, branch, set("b", "b"))
	_, err := branch.Push(t.Context())
	var failure *gitrepo.Error
	if !errors.As(err, &failure) || failure.Kind != gitrepo.Unreachable || branch.Tip() != first {
		t.Fatalf("error %v, tip %s", err, branch.Tip())
	}
	lose.Store(false)
	for commit, want := range map[gitrepo.Hash]bool{first: true, second: true, gitrepo.BlobHash(nil): false} {
		if found, err := branch.Contains(t.Context(), commit, 10); err != nil || found != want {
			t.Errorf("Contains(%s) = %v, %v", commit, found, err)
		}
	}
	if _, _, err := branch.Stage(commitOf("third", set("c", "c"))); err != nil {
		t.Fatal(err)
	}
	if _, err := branch.Push(t.Context()); !errors.Is(err, gitrepo.ErrMoved) {
		t.Fatalf("error %v, want ErrMoved", err)
	}
	if err := branch.Refresh(t.Context()); err != nil || branch.Tip() != second {
		t.Errorf("tip %s, error %v; want %s", branch.Tip(), err, second)
	}
}

func TestContains(t *testing.T) {
	for name, filter := range map[string]string{"filter": "true", "no filter": "false"} {
		t.Run(name, func(t *testing.T) {
			transports(t, func(t *testing.T, r repository, url string) {
				r.git("config", "uploadpack.allowFilter", filter)
				branch := load(t, newRemote(t, url), gitrepo.Options{})
				if found, err := branch.Contains(t.Context(), gitrepo.BlobHash(nil), 5); found || err != nil {
					t.Errorf("Contains in an empty repository = %v, %v", found, err)
				}
				var commits []gitrepo.Hash
				for i := range 6 {
					commits = append(commits, stage(t, branch, set("f", strconv.Itoa(i))))
				}
				push(t, branch)
				for i, commit := range commits {
					for _, depth := range []int{0, 1, 3, 6, 100} {
						want := i >= len(commits)-depth
						if got, err := branch.Contains(t.Context(), commit, depth); got != want || err != nil {
							t.Errorf("commit %d at depth %d: %v, %v", i, depth, got, err)
						}
					}
				}
			})
		})
	}
}

// TestRejectionThatMayHaveBeenApplied checks that a push does not count as refused if the server does not say so, or if the branch cannot be
// read afterwards.
func TestRejectionThatMayHaveBeenApplied(t *testing.T) {
	for name, tt := range map[string]struct {
		push func(http.ResponseWriter, *http.Request, http.Handler)
		read bool
	}{
		"no report": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "teapot", http.StatusTeapot)
		}, true},
		"no read": {func(w http.ResponseWriter, r *http.Request, git http.Handler) { git.ServeHTTP(w, r) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.hook("pre-receive", "exit 1\n")
			var pushed atomic.Bool
			branch := load(t, newRemote(t, r.serve(func(git http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack"):
						pushed.Store(true)
						tt.push(w, r, git)
					case pushed.Load() && !tt.read:
						http.Error(w, "down", http.StatusServiceUnavailable)
					default:
						git.ServeHTTP(w, r)
					}
				})
			})), gitrepo.Options{})
			stage(t, branch, set("a", "a"))
			_, err := branch.Push(t.Context())
			hasKind(t, err, gitrepo.Rejected)
			if errors.Is(err, gitrepo.ErrRefused) {
				t.Errorf("error %v is ErrRefused", err)
			}
		})
	}
}

func TestRejectingHooks(t *testing.T) {
	for hook, script := range map[string]string{
		"pre-receive": "echo 'commits need a ticket' >&2\nexit 1\n",
		"update":      "echo 'commits need a ticket'\nexit 1\n",
		// Gitea's hooks print empty lines around their messages.
		"pre-receive of Gitea": "printf 'error: \\nerror: commits need a ticket\\nerror: \\n' >&2\nexit 1\n",
	} {
		t.Run(hook, func(t *testing.T) {
			transports(t, func(t *testing.T, r repository, url string) {
				name, _, _ := strings.Cut(hook, " ")
				r.hook(name, script)
				branch := load(t, newRemote(t, url), gitrepo.Options{})
				stage(t, branch, set("a", "a"))
				_, err := branch.Push(t.Context())
				var failure *gitrepo.Error
				if !errors.As(err, &failure) || failure.Kind != gitrepo.Rejected || !errors.Is(err, gitrepo.ErrRefused) {
					t.Fatalf("error %v", err)
				}
				for _, part := range []string{"commits need a ticket", "hook declined"} {
					if !strings.Contains(failure.Message, part) {
						t.Errorf("message %q lacks %q", failure.Message, part)
					}
				}
				for line := range strings.Lines(failure.Message) {
					if strings.TrimSpace(line) == "error:" || strings.HasSuffix(line, "error:\n") {
						t.Errorf("message %q has an empty line", failure.Message)
					}
				}
				if branch.Snapshot().Len("") != 0 || !branch.Tip().IsZero() {
					t.Error("snapshot has the files of the rejected push")
				}
			})
		})
	}
}

func TestOutputOfPostReceiveHook(t *testing.T) {
	transports(t, func(t *testing.T, r repository, url string) {
		r.hook("post-receive", "for i in $(seq 2000); do echo \"message $i, long enough to fill the buffers\"; done\n")
		branch := load(t, newRemote(t, url), gitrepo.Options{})
		for i := range 3 {
			stage(t, branch, set("a", strconv.Itoa(i)))
			push(t, branch)
		}
		r.fsck()
	})
}

// TestServerWithoutThinPacks has a server that advertises thin packs and fails to index them.
func TestServerWithoutThinPacks(t *testing.T) {
	r := newRepository(t)
	var thin atomic.Int64
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			body, _ := io.ReadAll(request.Body)
			request.Body = io.NopCloser(bytes.NewReader(body))
			if at := bytes.Index(body, []byte("PACK\x00")); at >= 0 && r.isThin(body[at:]) {
				thin.Add(1)
				response.Header().Set("Content-Type", "application/x-git-receive-pack-result")
				var report bytes.Buffer
				packets := pktline.NewEncoder(&report)
				_ = packets.Encodef("unpack unresolved deltas left\n")
				_ = packets.Flush()
				packets = pktline.NewEncoder(response)
				_ = packets.Encodef("\x01%s", report.String())
				_ = packets.Flush()
				return
			}
			next.ServeHTTP(response, request)
		})
	})
	branch := load(t, newRemote(t, url), gitrepo.Options{})
	var changes []gitrepo.Change
	for i := range 200 {
		changes = append(changes, set(fmt.Sprintf("flat/%d.yaml", i), "x"))
	}
	stage(t, branch, changes...)
	push(t, branch)
	failures := 0
	for i := range 5 {
		stage(t, branch, set("flat/7.yaml", strconv.Itoa(i)))
		if _, err := branch.Push(t.Context()); err != nil {
			t.Log(err)
			failures++
			stage(t, branch, set("flat/7.yaml", strconv.Itoa(i)))
			push(t, branch)
		}
	}
	if failures != 1 || thin.Load() != 1 {
		t.Errorf("%d failures, %d thin packs; want one each", failures, thin.Load())
	}
	r.fsck()
}

// isThin reports whether the pack depends on objects outside of it.
func (r repository) isThin(pack []byte) bool {
	r.t.Helper()
	return !indexes(r.t, pack)
}
