// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDemoAndTour runs the demo twice, follows the README and the page of the tour, and ends the demo, which must leave nothing.
func TestDemoAndTour(t *testing.T) {
	t.Parallel()
	build(t)
	r := newReader(t, strings.NewReplacer())
	r.setenv(t, "DEMO_LIMIT=300")
	t.Cleanup(func() {
		// The context of the test has ended already.
		if out, err := r.run(context.Background(), "hack/demo.sh down"); err != nil {
			t.Errorf("end the demo: %v\n%s", err, out)
		}
	})
	out := r.demo(t, "up")
	r.wantPage(t)
	history := r.history(t)
	wantHistory(t, history)
	r.wantTree(t)
	r.wantEnvironment(t, out)
	wantReceived(t, out)
	wantTakenBack(t, out)
	wantNotified(t, out)

	if out = r.demo(t, "up"); !strings.Contains(out, "The demo runs already") {
		t.Errorf("second start does not report the running demo:\n%s", out)
	}
	if again := r.history(t); !slices.Equal(again, history) {
		t.Errorf("second start made commits:\n%s", strings.Join(again, "\n"))
	}

	trying, _ := splitAt(t, moduleRoot(t), "README.md", installHeading)
	r.follow(t, trying)
	r.follow(t, shellBlocks(t, moduleRoot(t), tourPage))

	r.wantMetrics(t)
	r.wantLog(t)
	addresses := append(r.inboxAddresses(t), r.serverAddress(t), r.pageLink(t).Host)
	r.demo(t, "down")
	for _, address := range addresses {
		if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
			_ = connection.Close()
			t.Errorf("a program of the demo still listens on %s", address)
		}
	}
	if _, err := os.Stat(filepath.Join(r.folder, ".dev", "demo")); !os.IsNotExist(err) {
		t.Errorf("folder of the demo still exists: %v", err)
	}
	r.demo(t, "down")
}

// pageLink returns the link that the page of the demo has printed.
func (r *reader) pageLink(t *testing.T) *url.URL {
	t.Helper()
	output, err := os.ReadFile(filepath.Join(r.folder, ".dev", "demo", "page.log"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(output), "\n")
	link, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// wantPage expects the link of the page to open a session.
func (r *reader) wantPage(t *testing.T) {
	t.Helper()
	link := r.pageLink(t)
	origin := "http://" + link.Host
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/api/session", strings.NewReader(`{"code":"`+link.Fragment+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Origin": {origin}, "Sec-Fetch-Site": {"same-origin"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // The response has been read.
	if response.StatusCode != http.StatusOK {
		t.Errorf("the link of the page opens no session: %s", response.Status)
	}
}

// wantLog expects the log lines that operations.md documents.
func (r *reader) wantLog(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.folder, ".dev", "demo", "logs", "slipstream*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("log files of the server: %q, %v", files, err)
	}
	var log strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(text)
	}
	for _, line := range []string{
		`"Leading: starting the controllers" .*controllers=`,
		`"Compared with the cluster" logger="mirror".* destination="shop/shop" type="`,
		`"Pushed" logger="mirror".* destination="shop/shop" commits=`,
		`"Catalog has a new revision" logger="catalog".* catalog="teams/shop" revision=`,
		`"Synced an environment" logger="environment".* environment="`,
		`"Sent a batch" logger="pipeline".* pipeline="`,
		`"Attempted to deliver a message" .*sink="teams/webhook".* outcome="?Delivered`,
	} {
		if !regexp.MustCompile(line).MatchString(log.String()) {
			t.Errorf("log has no line that matches %s", line)
		}
	}
}

// build builds the programs that hack/demo.sh and the pages use, like `make demo`.
func build(t *testing.T) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", "build", "bin/dev")
	command.Dir = moduleRoot(t)
	command.Env = compileOnce()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// demo runs hack/demo.sh.
func (r *reader) demo(t *testing.T, verb string) string {
	t.Helper()
	out, err := r.run(t.Context(), "hack/demo.sh "+verb)
	if err != nil {
		t.Fatalf("hack/demo.sh %s: %v\n%s", verb, err, out)
	}
	return out
}

// git runs git on the demo's repository.
func (r *reader) git(t *testing.T, arguments ...string) string {
	t.Helper()
	repository := filepath.Join(r.folder, ".dev", "demo", "git", "shop.git")
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"--git-dir", repository}, arguments...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// history returns author, attribution and subject of each commit, oldest first. Both signals are shown as attributed, because either
// may arrive first.
func (r *reader) history(t *testing.T) []string {
	t.Helper()
	const format = "--format=%an, %(trailers:key=X-ConfigButler-Attribution,valueonly,separator=): %s"
	log := strings.NewReplacer(", audit: ", ", attributed: ", ", admission: ", ", attributed: ").
		Replace(r.git(t, "log", "--reverse", format, "main"))
	return strings.Split(log, "\n")
}

// wantHistory expects the seeds first, and then one commit for each change by its author.
func wantHistory(t *testing.T, history []string) {
	t.Helper()
	changes := []string{
		"jane, attributed: [UPDATE] apps/v1/deployments shop/web",
		"bob, attributed: [UPDATE] v1/configmaps shop/web",
		"bob, attributed: [DELETE] apps/v1/deployments shop/report",
		"bob, attributed: [UPDATE] apps/v1/deployments shop/cart",
		"jane, attributed: [UPDATE] apps/v1/deployments shop/cart",
		"admin, attributed: [CREATE] apiextensions.k8s.io/v1/customresourcedefinitions coupons.shop.example.com",
		"admin, attributed: [CREATE] shop.example.com/v1/coupons shop/spring",
	}
	first := len(history) - len(changes)
	if first < 1 || !slices.Equal(history[first:], changes) {
		t.Errorf("history does not end with\n%s\nhistory:\n%s", strings.Join(changes, "\n"), strings.Join(history, "\n"))
	}
	for _, commit := range history[:max(first, 0)] {
		if !strings.HasPrefix(commit, "Slipstream demo, unknown: ") && !strings.HasPrefix(commit, "admin, attributed: ") {
			t.Errorf("unexpected commit: %s", commit)
		}
	}
}

// wantTree checks the files of the branch after the demo.
func (r *reader) wantTree(t *testing.T) {
	t.Helper()
	files := strings.Split(r.git(t, "ls-tree", "-r", "--name-only", "main:clusters/demo"), "\n")
	want := []string{
		".configbutler/owner.yaml",
		"apiextensions.k8s.io/v1/customresourcedefinitions/coupons.shop.example.com.yaml",
		"apps/v1/deployments/shop/cart.yaml",
		"apps/v1/deployments/shop/web.yaml",
		"configbutler.ai/v1alpha1/gitdestinations/shop/shop.yaml",
		"configbutler.ai/v1alpha1/gitrepoconfigs/shop/shop.yaml",
		"configbutler.ai/v1alpha1/watchrules/shop/everything.yaml",
		"core/v1/configmaps/shop/web.yaml",
		"core/v1/secrets/shop/database.yaml",
		"core/v1/services/shop/cart.yaml",
		"core/v1/services/shop/web.yaml",
		"rbac.authorization.k8s.io/v1/rolebindings/shop/editors.yaml",
		"shop.example.com/v1/coupons/shop/spring.yaml",
	}
	if !slices.Equal(files, want) {
		t.Errorf("files of the branch:\n%s\nwant\n%s", strings.Join(files, "\n"), strings.Join(want, "\n"))
	}
}

// wantEnvironment expects the output of the demo to show the changes of production that the environment lacked, and the environment
// to have them, beside the developer's objects.
func (r *reader) wantEnvironment(t *testing.T, shown string) {
	t.Helper()
	for _, line := range []string{
		"staging shop Shared no shop-staging 1 workload changed 1 AGE",
		"staging shop Shared no shop-staging 1 workload, 1 ConfigMap changed 1 AGE",
		`ConfigMap/web /data/BANNER: "Autumn sale" -> "Winter sale"`,
		`Deployment/web /spec/template/spec/containers[name=web]/image: "registry.example.com/shop/web:1.8" -> ` +
			`"registry.example.com/shop/web:1.9"`,
		"staging shop Shared no shop-staging Synced 3 AGE",
		"staging shop Shared no shop-staging Synced 3 3/3 ...",
	} {
		if err := missing([]string{line}, shown); err != nil {
			t.Errorf("output of the demo: %v", err)
		}
	}
	const look = `eval "$(hack/demo.sh env)"
kubectl get deployment web -n shop-staging -o jsonpath='{.spec.template.spec.containers[0].image}{"\n"}'
kubectl get configmaps web notes -n shop-staging -o jsonpath='{.items[0].data.BANNER}{"\n"}{.items[1].data.dana}{"\n"}'`
	out, err := r.run(t.Context(), look)
	if err == nil {
		err = missing([]string{"registry.example.com/shop/web:1.9", "Winter sale", "trying another banner on Tuesday"}, out)
	}
	if err != nil {
		t.Errorf("environment: %v\n%s", err, out)
	}
}

// wantReceived expects the output of the demo to show what the pipeline's receiver printed.
func wantReceived(t *testing.T, shown string) {
	t.Helper()
	for _, line := range []string{
		"instances.changed + apps/v1 Deployment shop-staging/web",
		"instances.changed - apps/v1 Deployment shop/report",
		"crd.changed + coupons.shop.example.com",
		"instances.changed + shop.example.com/v1 Coupon shop/spring",
		"index Watch receiver 7 0 Up to date AGE",
	} {
		if err := missing([]string{line}, shown); err != nil {
			t.Errorf("output of the demo: %v", err)
		}
	}
}

// wantTakenBack expects the output of the demo to show a bad change, and how it is taken back.
func wantTakenBack(t *testing.T, shown string) {
	t.Helper()
	for _, line := range []string{
		"12s bob Deployment/cart Update /spec/replicas 8548a58 fe5de6d34b76-3aa1b51ab792",
		"Who: bob, by an audit ...",
		"- replicas: 2",
		"+ replicas: 0",
		"/spec/replicas 2 0 2",
		"Deployment/cart updated",
	} {
		if err := missing([]string{line}, shown); err != nil {
			t.Errorf("output of the demo: %v", err)
		}
	}
}

// wantNotified expects the output of the demo to show the mail about jane's change, and what the webhook received.
func wantNotified(t *testing.T, shown string) {
	t.Helper()
	for _, line := range []string{
		"| Subject: Deployment shop/web: Updated by jane",
		"| /spec/template/spec/containers[name=web]/image",
		`| - "registry.example.com/shop/web:1.8"`,
		`| + "registry.example.com/shop/web:1.9"`,
		"Prompted Environment teams/staging: 1 workload changed changed by jane",
		"Completed Environment teams/staging: Synced to revision 3 changed by jane requested by dana",
		"slipstream-system mail mail production@demo.example.com Change ...",
	} {
		if err := missing([]string{line}, shown); err != nil {
			t.Errorf("output of the demo: %v", err)
		}
	}
}

// inboxAddresses returns the addresses of the demo's mail server and webhook.
func (r *reader) inboxAddresses(t *testing.T) []string {
	t.Helper()
	out, err := r.run(t.Context(), `(. .dev/demo/inbox/env && printf '%s %s' "${MAIL_HOST}:${MAIL_PORT}" "${WEBHOOK_URL#http://}")`)
	addresses := strings.Fields(out)
	if err != nil || len(addresses) != 2 {
		t.Fatalf("find the demo's inbox: %v\n%s", err, out)
	}
	return addresses
}

// serverAddress returns the address of the demo's server.
func (r *reader) serverAddress(t *testing.T) string {
	t.Helper()
	out, err := r.run(t.Context(), `(. .dev/demo/env && printf %s "${SERVER_URL#https://}")`)
	if err != nil || out == "" {
		t.Fatalf("find the demo's server: %v\n%s", err, out)
	}
	return out
}
