/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package ownership

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// hashVersion prefixes every hash. It is incremented when the computation of desired objects changes. A hub that reads an older
// version compares the objects before it writes.
const hashVersion = "1:"

// Hasher computes the hash in a mark. The hash is keyed, so that nobody can guess the content of a Secret from its mark.
type Hasher struct {
	key []byte
}

// NewHasher returns a Hasher for the key, which must be the same for all replicas of a hub.
func NewHasher(key []byte) Hasher {
	return Hasher{key: key}
}

// Hash returns the hash of a desired object, which must consist of the types that JSON decoding produces. Equal objects have
// equal hashes; the order of their keys does not matter.
func (h Hasher) Hash(desired map[string]any) (string, error) {
	mac := hmac.New(sha256.New, h.key)
	if err := json.NewEncoder(mac).Encode(desired); err != nil {
		return "", fmt.Errorf("cannot hash the desired object: %w", err)
	}
	return hashVersion + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18]), nil
}
