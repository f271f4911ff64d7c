// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"
)

// clientID is the name under which the issuer knows the proxy, and the audience of its tokens.
const clientID = "slipstream"

// tokenLife is how long a token of the issuer is valid.
const tokenLife = 10 * time.Minute

// issuer is an OpenID Connect issuer, at which users log in by their names.
type issuer struct {
	server *httptest.Server
	key    *rsa.PrivateKey

	mu sync.Mutex
	// users are those who have logged in, by the code or the refresh token that stands for them.
	users map[string]string
	// renewed counts the tokens that were renewed.
	renewed int
}

// startIssuer starts an issuer until the test ends.
func startIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, users: map[string]string{}}
	i.server = httptest.NewTLSServer(i)
	t.Cleanup(i.server.Close)
	return i
}

// certificate writes the certificate of the issuer to a file.
func (i *issuer) certificate(t *testing.T, file string) {
	t.Helper()
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// renewals returns how many tokens were renewed.
func (i *issuer) renewals() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.renewed
}

// ServeHTTP implements http.Handler.
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		write(w, map[string]any{
			"issuer": i.server.URL, "authorization_endpoint": i.server.URL + "/login", "token_endpoint": i.server.URL + "/token",
			"jwks_uri": i.server.URL + "/keys", "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	case "/keys":
		write(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes()),
		}}})
	case "/login":
		i.login(w, r)
	case "/token":
		i.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

// login shows a form for the name of the user, and sends the user back to the proxy.
func (i *issuer) login(w http.ResponseWriter, r *http.Request) {
	user := r.PostFormValue("user")
	if user == "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<form method="post" action="%s"><label>User <input name="user"></label><button>Log in</button></form>`, html.EscapeString(r.RequestURI))
		return
	}
	back, err := url.Parse(r.URL.Query().Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	back.RawQuery = url.Values{"code": {i.remember(user)}, "state": {r.URL.Query().Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// remember returns a secret that stands for a user.
func (i *issuer) remember(user string) string {
	secret := rand.Text()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.users[secret] = user
	return secret
}

// token returns tokens for a code or a refresh token.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	secret := r.PostFormValue("code")
	isRenewal := r.PostFormValue("grant_type") == "refresh_token"
	if isRenewal {
		secret = r.PostFormValue("refresh_token")
	}
	i.mu.Lock()
	user, found := i.users[secret]
	if found && isRenewal {
		i.renewed++
	}
	i.mu.Unlock()
	if !found {
		w.WriteHeader(http.StatusBadRequest)
		write(w, map[string]any{"error": "invalid_grant"})
		return
	}
	token, err := i.sign(map[string]any{
		"iss": i.server.URL, "aud": clientID, "sub": user, "preferred_username": user, "email": user, "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": time.Now().Add(tokenLife).Unix(),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(tokenLife.Seconds()), "id_token": token, "refresh_token": i.remember(user),
	})
}

// sign returns a JSON Web Token.
func (i *issuer) sign(claims map[string]any) (string, error) {
	content, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encode([]byte(`{"alg":"RS256","kid":"1","typ":"JWT"}`)) + "." + encode(content)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	return signed + "." + encode(signature), err
}

func encode(of []byte) string { return base64.RawURLEncoding.EncodeToString(of) }

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // The client sees a response that is cut off.
}
