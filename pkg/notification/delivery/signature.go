// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
)

// Symmetric keys: github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
const (
	keyPrefix = "whsec_"
	// minKey and maxKey are the lengths of a key, in bytes.
	minKey = 24
	maxKey = 64
	// maxKeys is more than a rotation needs.
	maxKeys = 4
)

// signingKey is a symmetric key of Standard Webhooks.
type signingKey struct {
	// text is the key as the user has written it, without its prefix.
	text  string
	bytes []byte
}

// readSigningKeys returns the keys in a Secret, separated by spaces: several while one replaces another.
func readSigningKeys(secret outbound.Secret) ([]signingKey, error) {
	fields := strings.Fields(secret.Value(keySecret))
	if len(fields) > maxKeys {
		return nil, outbound.InvalidSecret("the Secret %s has %d keys in secret, and %d are allowed; remove the old ones",
			secret.Name, len(fields), maxKeys)
	}
	var keys []signingKey
	for _, field := range fields {
		text, ok := strings.CutPrefix(field, keyPrefix)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil || len(decoded) < minKey || len(decoded) > maxKey {
			return nil, outbound.InvalidSecret("the secret in the Secret %s is not %s and %d to %d bytes in base64; write it again",
				secret.Name, keyPrefix, minKey, maxKey)
		}
		keys = append(keys, signingKey{text, decoded})
	}
	return keys, nil
}

// sign adds the headers of Standard Webhooks. Without keys, there is no signature. The ID is the same when a message is sent again, and the
// time is not, so that receivers can reject old requests.
func sign(header http.Header, keys []signingKey, id string, now time.Time, body []byte) {
	seconds := strconv.FormatInt(now.Unix(), 10)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", seconds)
	var signatures []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key.bytes)
		mac.Write([]byte(id + "." + seconds + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(signatures) > 0 {
		header.Set("Webhook-Signature", strings.Join(signatures, " "))
	}
}
