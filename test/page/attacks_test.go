// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit"
)

// port returns the port of the dashboard.
func (c *client) port(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	return address.Port()
}

// testHosts sends requests to other hosts than the one of the link, as a page does whose name is resolved to this machine.
func (s *testCluster) testHosts(t *testing.T) {
	c := s.newClient(t, victor)
	port := c.port(t)
	for _, name := range []string{"evil.example.com:" + port, "localhost:" + port, "127.0.0.1", "127.0.0.1:1", "127.0.0.1.:" + port, "127.1:" + port, "[::1]:" + port, "0.0.0.0:" + port} {
		for _, path := range []string{"/", "/app.js", "/api/session", "/api/stream", "/missing"} {
			method := http.MethodGet
			if strings.HasPrefix(path, "/api/") {
				method = http.MethodPost
			}
			if got := c.send(t, method, path, "{}", host("%s", name)); got.status != http.StatusMisdirectedRequest {
				t.Errorf("%s of host %s: status %d, want %d", path, name, got.status, http.StatusMisdirectedRequest)
			}
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range addresses {
		network, isNetwork := each.(*net.IPNet)
		if !isNetwork || network.IP.IsLoopback() || network.IP.IsLinkLocalUnicast() {
			continue
		}
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(network.IP.String(), port))
		if err == nil {
			_ = connection.Close()
			t.Errorf("the page is served on %s, too", network.IP)
		}
	}
}

// headers are the security headers of every response.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"X-Frame-Options":              "DENY",
}

// testHeaders expects the security headers in responses of all kinds.
func (s *testCluster) testHeaders(t *testing.T) {
	c := s.newClient(t, victor)
	for what, got := range map[string]response{
		"page":            c.send(t, http.MethodGet, "/", ""),
		"script":          c.send(t, http.MethodGet, "/app.js", ""),
		"style":           c.send(t, http.MethodGet, "/app.css", ""),
		"icon":            c.send(t, http.MethodGet, "/favicon.svg", ""),
		"missing":         c.send(t, http.MethodGet, "/missing", ""),
		"other host":      c.send(t, http.MethodGet, "/", "", host("evil.example.com")),
		"other method":    c.send(t, http.MethodPut, "/", ""),
		"no session":      c.post(t, "/api/list", map[string]any{}, without(sessionHeader)),
		"cross origin":    c.post(t, "/api/list", map[string]any{}, with("Origin", "https://evil.example.com")),
		"invalid request": c.send(t, http.MethodPost, "/api/list", "{"),
		"list":            c.post(t, "/api/list", map[string]any{"resource": "environments"}),
		"preflight":       c.send(t, http.MethodOptions, "/api/list", "", with("Origin", "https://evil.example.com"), with("Access-Control-Request-Method", "POST")),
	} {
		for name, want := range headers {
			if value := strings.Join(got.header.Values(name), "|"); value != want {
				t.Errorf("%s: %s is %q, want %q", what, name, value, want)
			}
		}
		for name := range got.header {
			if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" || name == "Server" {
				t.Errorf("%s: unexpected header %s: %s", what, name, got.header.Get(name))
			}
		}
	}
	for path, kind := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/app.css": "text/css", "/favicon.svg": "image/svg+xml"} {
		got := c.send(t, http.MethodGet, path, "")
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), kind) || got.body == "" {
			t.Errorf("%s: status %d, type %s, %d bytes", path, got.status, got.header.Get("Content-Type"), len(got.body))
		}
	}
}

// testRoutes expects nothing but the files of the page and its API: no way to the API of the cluster, and no other methods.
func (s *testCluster) testRoutes(t *testing.T) {
	c := s.newClient(t, victor)
	for _, path := range []string{
		"/index.html", "/app.js.map", "/app.ts", "/api", "/api/", "/api/v1/namespaces", "/apis/configbutler.ai/v1alpha1/environments", "/version",
		"/healthz", "/metrics", "/debug/pprof/", "/%2e%2e/go.mod", "/..%2fgo.mod", "/app.js/", "/APP.JS", "/api/session/x",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if got := c.send(t, method, path, "{}"); got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d: %s", method, path, got.status, got.body)
			}
		}
	}
	for _, path := range []string{"/api/session", "/api/stream", "/api/list", "/api/object", "/api/change", "/api/actions", "/api/run", "/api/patch", "/api/allow", "/api/end"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace} {
			got := c.send(t, method, path, "{}", with("Origin", c.Address), with("Sec-Fetch-Site", "same-origin"), with(sessionHeader, c.session), with("Content-Type", "application/json"))
			if got.status < 400 {
				t.Errorf("%s %s: status %d: %s", method, path, got.status, got.body)
			}
		}
	}
}

// testOrigins posts as other pages can make a browser post. Each request has a valid session, which other pages cannot know.
func (s *testCluster) testOrigins(t *testing.T) {
	c := s.newClient(t, victor)
	other := s.dashboard(t, jane).Address
	list := map[string]any{"resource": "environments"}
	c.expect(t, http.StatusOK, "/api/list", list)
	for what, changes := range map[string][]change{
		"another site":        {with("Origin", "https://evil.example.com"), with("Sec-Fetch-Site", "cross-site")},
		"another origin":      {with("Origin", "https://evil.example.com")},
		"no origin":           {without("Origin")},
		"an opaque origin":    {with("Origin", "null")},
		"another port":        {with("Origin", other)},
		"another scheme":      {with("Origin", strings.Replace(c.Address, "http:", "https:", 1))},
		"a longer origin":     {with("Origin", c.Address+".evil.example.com")},
		"localhost":           {with("Origin", "http://localhost:"+c.port(t))},
		"cross-site":          {with("Sec-Fetch-Site", "cross-site")},
		"same-site":           {with("Sec-Fetch-Site", "same-site")},
		"no site":             {with("Sec-Fetch-Site", "none")},
		"without site":        {without("Sec-Fetch-Site")},
		"the origin twice":    {func(r *http.Request) { r.Header.Add("Origin", "https://evil.example.com") }},
		"the session twice":   {func(r *http.Request) { r.Header.Add(sessionHeader, strings.Repeat("0", 64)) }, with("Origin", "null")},
		"a form":              {with("Content-Type", "application/x-www-form-urlencoded"), with("Origin", "null")},
		"a URL as the origin": {with("Origin", c.Address+"/")},
	} {
		for _, path := range []string{"/api/list", "/api/session", "/api/run", "/api/allow"} {
			if got := c.post(t, path, list, changes...); got.status != http.StatusForbidden {
				t.Errorf("%s to %s: status %d, want %d: %s", what, path, got.status, http.StatusForbidden, got.body)
			}
		}
	}
}

// testBodies sends bodies that the page does not send.
func (s *testCluster) testBodies(t *testing.T) {
	c := s.newClient(t, victor)
	for what, test := range map[string]struct {
		body   string
		status int
		change change
	}{
		"plain text":      {`{"resource":"environments"}`, http.StatusUnsupportedMediaType, with("Content-Type", "text/plain")},
		"a form":          {`resource=environments`, http.StatusUnsupportedMediaType, with("Content-Type", "application/x-www-form-urlencoded")},
		"no type":         {`{"resource":"environments"}`, http.StatusUnsupportedMediaType, without("Content-Type")},
		"unknown field":   {`{"resource":"environments","verb":"delete"}`, http.StatusBadRequest, nil},
		"two values":      {`{"resource":"environments"}{}`, http.StatusBadRequest, nil},
		"no JSON":         {`resource`, http.StatusBadRequest, nil},
		"a list":          {`[]`, http.StatusBadRequest, nil},
		"no body":         {``, http.StatusBadRequest, nil},
		"too long":        {`{"resource":"` + strings.Repeat("e", 64<<10) + `"}`, http.StatusRequestEntityTooLarge, nil},
		"unknown":         {`{"resource":"secrets"}`, http.StatusBadRequest, nil},
		"a path":          {`{"resource":"environments/../secrets"}`, http.StatusBadRequest, nil},
		"namespace path":  {`{"resource":"environments","namespace":"team/../../x"}`, http.StatusBadRequest, nil},
		"unknown filters": {`{"resource":"changes","fields":{"spec.reason":"x"}}`, http.StatusBadRequest, nil},
	} {
		changes := []change{}
		if test.change != nil {
			changes = append(changes, test.change)
		}
		refused(t, what, c.send(t, http.MethodPost, "/api/list", test.body, changes...), test.status)
	}
	for _, resource := range []string{"secrets", "configmaps", "pods", "../secrets", "environments/secretdiff", ""} {
		body := fmt.Sprintf(`{"resource":%q,"namespace":%q,"name":"setup"}`, resource, production)
		refused(t, "object of "+resource, c.send(t, http.MethodPost, "/api/object", body), http.StatusBadRequest, http.StatusNotFound)
	}
}

// testCodes uses codes twice and codes that were never given.
func (s *testCluster) testCodes(t *testing.T) {
	d := s.dashboard(t, victor)
	c := &client{Dashboard: d}
	code := d.Code(t)
	if len(code) < 22 {
		t.Errorf("the code %s can be guessed: it has less than 128 bits", code)
	}
	c.expect(t, http.StatusOK, "/api/session", map[string]any{"code": code})
	again := c.post(t, "/api/session", map[string]any{"code": code})
	refused(t, "a code used twice", again, http.StatusUnauthorized)
	if !strings.Contains(again.body, "Enter") {
		t.Errorf("a code used twice: no way to a new link in %s", again.body)
	}
	for _, wrong := range []string{"", "x", code + "x", strings.ToUpper(code), strings.Repeat("A", 1000)} {
		refused(t, "code "+wrong, c.post(t, "/api/session", map[string]any{"code": wrong}), http.StatusUnauthorized, http.StatusBadRequest)
	}
	first := d.Code(t)
	second := d.Code(t)
	if first == second {
		t.Error("two links have the same code")
	}
	refused(t, "a code of another dashboard", (&client{Dashboard: s.dashboard(t, jane)}).post(t, "/api/session", map[string]any{"code": second}),
		http.StatusUnauthorized)
	c.expect(t, http.StatusOK, "/api/session", map[string]any{"code": second})
}

// testSessions uses sessions that are not valid: none, wrong ones, one of another process, and one that has ended.
func (s *testCluster) testSessions(t *testing.T) {
	c, other := s.newClient(t, victor), s.newClient(t, jane)
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(c.session) {
		t.Errorf("the session %s has not 256 bits", c.session)
	}
	list := map[string]any{"resource": "environments"}
	for what, each := range map[string]change{
		"no session":          without(sessionHeader),
		"an empty one":        with(sessionHeader, ""),
		"zeros":               with(sessionHeader, strings.Repeat("0", 64)),
		"a part":              with(sessionHeader, c.session[:63]),
		"a longer one":        with(sessionHeader, c.session+"0"),
		"one of another user": with(sessionHeader, other.session),
		"a cookie": func(r *http.Request) {
			r.Header.Del(sessionHeader)
			r.Header.Set("Cookie", sessionHeader+"="+c.session)
		},
		"one in the URL":        func(r *http.Request) { r.Header.Del(sessionHeader); r.URL.RawQuery = "session=" + c.session },
		"one for authorization": func(r *http.Request) { r.Header.Del(sessionHeader); r.Header.Set("Authorization", "Bearer "+c.session) },
	} {
		for _, path := range []string{"/api/stream", "/api/list", "/api/object", "/api/change", "/api/actions", "/api/run", "/api/patch", "/api/allow", "/api/end"} {
			body := list
			if path != "/api/list" {
				body = map[string]any{}
			}
			refused(t, what+" to "+path, c.post(t, path, body, each), http.StatusUnauthorized)
		}
	}
	c.expect(t, http.StatusOK, "/api/end", map[string]any{})
	refused(t, "a session that has ended", c.post(t, "/api/list", list), http.StatusUnauthorized)
	other.expect(t, http.StatusOK, "/api/list", list)
}

// maxStreams is the number of streams at a time.
const maxStreams = 16

// testStreams reads a stream, and opens too many of them.
func (s *testCluster) testStreams(t *testing.T) {
	c := s.newClient(t, victor)
	next, stop, _ := c.stream(t)
	hello := next()
	if hello["type"] != "hello" || hello["user"] != victor || hello["namespace"] != "" {
		t.Errorf("the first message is %v", hello)
	}
	waiting := map[string]bool{"environments": true, "appcatalogs": true, "gitdestinations": true, "gitdestinationstatuses": true, "syncpipelines": true, "changes": true}
	for len(waiting) > 0 {
		if message := next(); message["type"] == "table" {
			delete(waiting, message["resource"].(string))
		}
	}
	stop()
	var stops []func()
	testkit.EventuallyTrue(t, "the last stream too many is refused", func() bool {
		_, stop, status := c.stream(t)
		stops = append(stops, stop)
		return status != http.StatusOK
	})
	if len(stops) > maxStreams+2 { // Streams that were closed may be counted for a moment, and those of other sessions count, too.
		t.Errorf("%d streams were opened", len(stops))
	}
	for _, each := range stops {
		each()
	}
	testkit.EventuallyTrue(t, "a stream can be opened again", func() bool {
		_, stop, status := c.stream(t)
		stop()
		return status == http.StatusOK
	})
}

// testReadOnly tries to change something while changes are not allowed.
func (s *testCluster) testReadOnly(t *testing.T) {
	c := s.newClient(t, jane)
	before := s.Field(t, team, "envt/bob", "{.metadata.resourceVersion}")
	for _, action := range []string{"sync", "dismiss", "undismiss", "rollback", "unpin", "rediscover"} {
		if got := c.run(t, http.StatusForbidden, action, "environments", team, "bob", nil); !strings.Contains(got, "changes") {
			t.Errorf("%s while read-only: %s", action, got)
		}
	}
	for resource, name := range map[string]string{"environments": "bob", "syncpolicies": "default"} {
		c.expect(t, http.StatusForbidden, "/api/patch", map[string]any{
			"resource": resource, "namespace": map[string]string{"environments": team}[resource], "name": name, "resourceVersion": before, "spec": map[string]any{"autoSync": true},
		})
	}
	if now := s.Field(t, team, "envt/bob", "{.metadata.resourceVersion}"); now != before {
		t.Error("the environment has changed while changes were not allowed")
	}
	if out := c.run(t, http.StatusOK, "sync", "environments", team, "bob", map[string]any{"preview": true}); !strings.Contains(out, "shop/api:2") {
		t.Errorf("the preview of a sync shows %s", out)
	}
	if now := s.Field(t, team, "envt/bob", "{.status.appliedRevision}"); now != "1" {
		t.Errorf("a preview has applied revision %s", now)
	}
	c.expect(t, http.StatusOK, "/api/allow", map[string]any{"allow": true})
	defer c.expect(t, http.StatusOK, "/api/allow", map[string]any{"allow": false})
	if out := c.run(t, http.StatusOK, "dismiss", "environments", team, "bob", nil); !strings.Contains(out, `{"exit":0`) {
		t.Errorf("dismiss once changes are allowed: %s", out)
	}
	if out := c.run(t, http.StatusOK, "undismiss", "environments", team, "bob", nil); !strings.Contains(out, `{"exit":0`) {
		t.Errorf("undismiss once changes are allowed: %s", out)
	}
}

// testArguments gives actions names and options that a command line would take for flags or for more than one argument. None is run
// with more than the user's own kubeconfig could do, and none reads a file.
func (s *testCluster) testArguments(t *testing.T) {
	c := s.newClient(t, victor)
	folder := t.TempDir()
	for _, text := range []string{
		"--kubeconfig=/dev/null", "-A", "--as=system:admin", "--dir=" + folder, "-f/etc/passwd", "a b", "a\nb", "a\x00b", "\x1b[2J", "../x", "a/b/c", strings.Repeat("a", 10_000), "",
	} {
		for what, body := range map[string]map[string]any{
			"name":      {"action": "diff", "resource": "environments", "namespace": team, "name": text},
			"namespace": {"action": "diff", "resource": "environments", "namespace": text, "name": "bob"},
			"action":    {"action": text, "resource": "environments", "namespace": team, "name": "bob"},
			"resource":  {"action": "diff", "resource": text, "namespace": team, "name": "bob"},
			"object":    {"action": "explain-drift", "resource": "environments", "namespace": team, "name": "bob", "options": map[string]any{"object": text}},
		} {
			if what == "object" && text == "" {
				continue // All objects.
			}
			got := c.post(t, "/api/run", body)
			failed := strings.Contains(got.body, `"exit":2`) || strings.Contains(got.body, "is no object of")
			if got.status == http.StatusOK && !failed || got.status >= 500 {
				t.Errorf("%s %.40q: status %d: %s", what, text, got.status, got.body)
			}
			if strings.Contains(got.body, "root:") {
				t.Errorf("%s %.40q: a file was read: %s", what, text, got.body)
			}
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("%d files were written: %v", len(entries), err)
	}
}

// testIdentity sends headers with which a proxy could be made to act as another user.
func (s *testCluster) testIdentity(t *testing.T) {
	c := s.newClient(t, nora)
	for name, value := range map[string]string{
		"Impersonate-User": "admin", "Impersonate-Group": "system:masters", "X-Remote-User": "admin", "X-Remote-Group": "system:masters",
		"Authorization": "Bearer x",
	} {
		got := c.post(t, "/api/list", map[string]any{"resource": "environments", "namespace": team}, with(name, value))
		refused(t, name, got, http.StatusForbidden)
		if !strings.Contains(got.body, "list") || strings.Contains(got.body, "bob") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	next, _, _ := c.stream(t, with("Impersonate-User", "admin"))
	if hello := next(); hello["user"] != nora {
		t.Errorf("the stream is that of %v", hello["user"])
	}
	v := s.newClient(t, victor)
	if out := v.run(t, http.StatusOK, "sync", "environments", team, "bob", nil); !strings.Contains(out, `"exit":5`) {
		t.Errorf("a viewer can sync: %s", out)
	}
}

// testDisclosure reads what may be read, also while the cluster cannot be reached, and expects neither values of Secrets nor what a
// page must not know: the address of the cluster, paths of files, credentials.
func (s *testCluster) testDisclosure(t *testing.T) {
	c := s.newClient(t, jane)
	config, err := s.person(t, jane).Kubectl.User.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	forbidden := []string{
		secretValue, "aHVudGVyMi1vZi1wcm9kdWN0aW9u", strings.TrimPrefix(config.Host, "https://"), s.wire.Addr().String(),
		filepath.Dir(string(c.User)), "BEGIN CERTIFICATE", "BEGIN EC PRIVATE", "BEGIN PRIVATE", "goroutine ",
	}
	check := func(what, body string) {
		t.Helper()
		for _, text := range forbidden {
			if strings.Contains(body, text) {
				t.Errorf("%s contains %q: %.2000s", what, text, body)
			}
		}
	}
	for _, resource := range []string{"environments", "appcatalogs", "gitdestinations", "gitdestinationstatuses", "syncpipelines", "changes", "syncstatuses", "environmentdependencies", "catalogworkloads", "gitrepoconfigs", "watchrules", "clusterwatchrules", "syncpolicies"} {
		check("the list of "+resource, c.expect(t, http.StatusOK, "/api/list", map[string]any{"resource": resource, "limit": 500}))
	}
	secrets := 0
	c.eachChange(t, func(namespace, name string, cells []string) {
		check("change "+name, c.expect(t, http.StatusOK, "/api/change", map[string]any{"namespace": namespace, "name": name}))
		if !slices.Contains(cells, "Secret/setup") {
			return
		}
		secrets++
		for _, action := range []string{"show", "undo", "restore"} {
			check(action+" of "+name, c.run(t, http.StatusOK, action, "changes", namespace, name, map[string]any{"preview": action != "show"}))
		}
	})
	for action, options := range map[string]map[string]any{
		"diff": {}, "missing": {}, "explain-drift": {"object": "deployment/api"},
	} {
		check(action, c.run(t, http.StatusOK, action, "environments", team, "bob", map[string]any{"options": options}))
	}
	if secrets == 0 {
		t.Error("there is no Change of a Secret")
	}
	check("blame", c.run(t, http.StatusOK, "blame", "objects", production, "", map[string]any{"options": map[string]any{"object": "secrets/setup"}}))
	next, _, _ := c.stream(t)
	for range 7 { // hello, and the six resources
		message, err := json.Marshal(next())
		if err != nil {
			t.Fatal(err)
		}
		check("the stream", string(message))
	}
	s.wire.Sever(true)
	defer s.wire.Sever(false)
	check("a list without the cluster", c.post(t, "/api/list", map[string]any{"resource": "environments"}).body)
	check("an action without the cluster", c.run(t, http.StatusOK, "diff", "environments", team, "bob", nil))
	for message := next(); message["type"] != "lost"; message = next() {
	}
}

// eachChange calls a function with all Changes of production, and the cells of their rows.
func (c *client) eachChange(t *testing.T, do func(namespace, name string, cells []string)) {
	t.Helper()
	var list struct {
		Rows []struct {
			Namespace, Name string
			Cells           []string
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(c.expect(t, http.StatusOK, "/api/list", map[string]any{"resource": "changes", "namespace": production, "limit": 500})), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Rows) == 0 {
		t.Fatal("there are no Changes")
	}
	for _, row := range list.Rows {
		do(row.Namespace, row.Name, row.Cells)
	}
}
