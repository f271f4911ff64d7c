// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/oauth2"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// reviewTimeout is how long the API server may take to say who a user is.
const reviewTimeout = 10 * time.Second

// requestHeaders say which client is the proxy, and which of its headers name the user. They are as the flags of kube-apiserver.
type requestHeaders struct {
	caFile                                           string
	allowedNames, names, uids, groups, extraPrefixes []string
}

func (h *requestHeaders) addFlags(flags *pflag.FlagSet) {
	const prefix = "requestheader-"
	flags.StringVar(&h.caFile, prefix+"client-ca-file", "", "The file with the authorities of the proxy's client certificate. Without it, no certificate is needed, which "+byFrontProxy+" does not allow.")
	flags.StringSliceVar(&h.allowedNames, prefix+"allowed-names", nil, "The common names that the certificate may have. Empty: any.")
	flags.StringSliceVar(&h.names, prefix+"username-headers", []string{"X-Remote-User"}, "The headers with the name of the user.")
	flags.StringSliceVar(&h.uids, prefix+"uid-headers", nil, "The headers with the UID of the user. Name only what the proxy sets or removes in each request.")
	flags.StringSliceVar(&h.groups, prefix+"group-headers", []string{"X-Remote-Group"}, "The headers with the groups of the user, one group each.")
	flags.StringSliceVar(&h.extraPrefixes, prefix+"extra-headers-prefix", nil, "The prefixes of headers with extra values of the user. Name only what the proxy sets or removes in each request.")
}

// authenticator returns what reads the headers.
func (h *requestHeaders) authenticator() authenticator.Request {
	return headerrequest.NewDynamic(headerNames(h.names), headerNames(h.uids), headerNames(h.groups), headerNames(h.extraPrefixes))
}

type headerNames = headerrequest.StaticStringSlice

// authenticateAny accepts each request.
var authenticateAny = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{}, true, nil
})

// verified returns a function that has an authenticator see only requests with a certificate of the proxy, if there are authorities.
func (h *requestHeaders) verified(ctx context.Context, all *background) (func(authenticator.Request) authenticator.Request, error) {
	if h.caFile == "" {
		return func(of authenticator.Request) authenticator.Request { return of }, nil
	}
	authorities, err := dynamiccertificates.NewDynamicCAContentFromFile("proxy", h.caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of the proxy: %w", err)
	}
	all.start(func() { authorities.Run(ctx, 1) })
	return func(of authenticator.Request) authenticator.Request {
		return x509.NewDynamicCAVerifier(authorities.VerifyOptions, of, x509.StaticStringSlice(h.allowedNames))
	}, nil
}

// identity is the user of a request.
type identity struct {
	// name is that of the user, and key distinguishes users.
	name, key string
	// config has the rights of the user.
	config *rest.Config
	// token is the one that config uses, nil if it impersonates the user.
	token *currentToken
}

// user returns the name of the user, empty if there is only one.
func (i *identity) user() string {
	if i == nil {
		return ""
	}
	return i.name
}

// users say who has sent a request.
type users interface {
	// identify returns the user of a request. A refusal is a question.
	identify(r *http.Request) (*identity, error)
	// isOf reports whether a request is of the user of a session.
	isOf(r *http.Request, of *identity) (bool, error)
}

// notOfProxy is the refusal of a request that the proxy has not sent.
func notOfProxy() error {
	return &refusal{http.StatusForbidden, "The request does not come from the proxy in front of this page", "Open the page at its own address"}
}

// noUser is the refusal of a request whose user is not known.
func noUser(text string) error {
	return &question{&refusal{http.StatusUnauthorized, text, "Reload the page to log in again"}, askLogin}
}

// headerUsers are the users that the headers of a proxy name. The page impersonates them.
type headerUsers struct {
	base    *rest.Config
	headers authenticator.Request
	// names are the headers with the name of the user.
	names []string
	// groups are those that are impersonated, all if it is empty.
	groups []string
}

// identify implements users.
func (u *headerUsers) identify(r *http.Request) (*identity, error) {
	found, err := u.of(r)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(u.base)
	config.Impersonate = rest.ImpersonationConfig{UserName: found.Name, UID: found.UID, Groups: found.Groups, Extra: found.Extra}
	return &identity{name: found.Name, key: keyOfUser(found), config: config}, nil
}

// isOf implements users. A user with other groups is another one.
func (u *headerUsers) isOf(r *http.Request, of *identity) (bool, error) {
	found, err := u.of(r)
	return err == nil && keyOfUser(found) == of.key, err
}

// of returns the user in the headers of a request.
func (u *headerUsers) of(r *http.Request) (*user.DefaultInfo, error) {
	if slices.ContainsFunc(u.names, func(header string) bool { return len(r.Header.Values(header)) > 1 }) {
		return nil, wrongUser("The proxy in front of this page names several users")
	}
	response, isOfProxy, err := u.headers.AuthenticateRequest(r)
	if err != nil || !isOfProxy && r.TLS != nil && len(r.TLS.PeerCertificates) == 0 {
		return nil, notOfProxy()
	}
	if !isOfProxy {
		return nil, noUser("The proxy in front of this page names no user")
	}
	found, isKnown := response.User.(*user.DefaultInfo)
	if !isKnown {
		return nil, notOfProxy()
	}
	return found, u.limit(found)
}

// limit removes groups that are not impersonated, and refuses a user that must not be.
func (u *headerUsers) limit(of *user.DefaultInfo) error {
	values := append([]string{of.Name, of.UID}, of.Groups...)
	for key, more := range of.Extra {
		values = append(append(values, key), more...)
	}
	if of.Name == "" || slices.ContainsFunc(values, isAltered) {
		return wrongUser("The proxy in front of this page names a user with characters that names do not have")
	}
	of.Groups = slices.DeleteFunc(of.Groups, func(group string) bool {
		return group == user.AllAuthenticated || len(u.groups) > 0 && !slices.Contains(u.groups, group) // The API server adds the first itself.
	})
	if slices.ContainsFunc(append([]string{of.Name}, of.Groups...), isOfSystem) {
		return wrongUser("The users and groups of Kubernetes itself, system:..., cannot use this page")
	}
	slices.Sort(of.Groups)
	return nil
}

// wrongUser is the refusal of a user who must not be impersonated.
func wrongUser(text string) error {
	return &refusal{http.StatusForbidden, text, "Log in at the proxy as yourself, or ask who runs it"}
}

// isAltered reports whether a value would be another one after a further hop, which removes spaces around it for example.
func isAltered(value string) bool {
	return value != strings.TrimSpace(value) || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl)
}

// isOfSystem reports whether a name is that of a user or a group of Kubernetes itself.
func isOfSystem(name string) bool { return strings.HasPrefix(name, "system:") }

// keyOfUser returns a text that differs for each user.
func keyOfUser(of *user.DefaultInfo) string {
	key, err := json.Marshal(of)
	if err != nil {
		return "" // It consists of texts, which can always be encoded.
	}
	return string(key)
}

// tokenUsers are the users whose tokens for the API server are in the requests.
type tokenUsers struct {
	base *rest.Config
	// proxy accepts requests of the proxy.
	proxy authenticator.Request
}

// trustedFor is how long a token is used until the API server is asked about it again.
const trustedFor = time.Minute

// currentToken is the latest token of a user.
type currentToken struct {
	value atomic.Pointer[string]
	// reviewed is when the API server last knew the token, in nanoseconds since 1970.
	reviewed atomic.Int64
}

func (t *currentToken) set(token string) {
	t.value.Store(&token)
	t.reviewed.Store(time.Now().UnixNano())
}

// Token implements oauth2.TokenSource.
func (t *currentToken) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: *t.value.Load()}, nil
}

func (t *currentToken) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(*t.value.Load()), []byte(token)) == 1
}

// identify implements users.
func (u *tokenUsers) identify(r *http.Request) (*identity, error) {
	token, err := u.tokenOf(r)
	if err != nil {
		return nil, err
	}
	current := &currentToken{}
	current.set(token)
	config := rest.CopyConfig(u.base)
	config.WrapTransport = transport.TokenSourceWrapTransport(current)
	found, err := userOf(r.Context(), config)
	if err != nil {
		return nil, err
	}
	// The groups may differ between tokens: the API server takes those of the token that it gets.
	key := keyOfUser(&user.DefaultInfo{Name: found.Username, UID: found.UID})
	return &identity{name: found.Username, key: key, config: config, token: current}, nil
}

// isOf implements users. A proxy renews tokens, so that another token may be of the same user, and a token may have been revoked.
func (u *tokenUsers) isOf(r *http.Request, of *identity) (bool, error) {
	token, err := u.tokenOf(r)
	if err != nil || of.token.is(token) && time.Since(time.Unix(0, of.token.reviewed.Load())) < trustedFor {
		return err == nil, err
	}
	later, err := u.identify(r)
	if err != nil || later.key != of.key {
		return false, err
	}
	of.token.set(token)
	return true, nil
}

// tokenOf returns the token of a request.
func (u *tokenUsers) tokenOf(r *http.Request) (string, error) {
	if _, isOfProxy, err := u.proxy.AuthenticateRequest(r); err != nil || !isOfProxy {
		return "", notOfProxy()
	}
	kind, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(kind, "bearer") || token == "" || len(r.Header.Values("Authorization")) != 1 {
		return "", noUser("The proxy in front of this page sends no token of the user")
	}
	return token, nil
}

// userOf returns the user of a configuration, as the API server knows it.
func userOf(ctx context.Context, config *rest.Config) (*authenticationv1.UserInfo, error) {
	client, err := authentication.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	found, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, noUser("The API server does not accept the token of the user: it may have expired")
	case err != nil:
		return nil, err
	case found.Status.UserInfo.Username == user.Anonymous:
		return nil, noUser("The API server does not know the user of the token")
	}
	return &found.Status.UserInfo, nil
}
