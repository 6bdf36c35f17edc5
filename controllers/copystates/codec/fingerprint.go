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

package codec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// fingerprintKey returns the key of fingerprints. Without the sealer's key nobody can make two copies with one fingerprint, nor guess
// names from fingerprints.
func fingerprintKey(sealer *ownership.Sealer) string { return sealer.SealText("copy-fingerprint", "") }

// fingerprinter computes fingerprints. One goroutine at a time may use it.
type fingerprinter struct {
	mac hash.Hash
	buf []byte
}

func newFingerprinter(key string) *fingerprinter {
	return &fingerprinter{mac: hmac.New(sha256.New, []byte(key))}
}

// of returns the fingerprint of a version of a copy, or that of the copy whatever its version is, if version is zero.
func (f *fingerprinter) of(resource schema.GroupResource, key types.NamespacedName, version objectsync.PlacementCopyVersion) uint64 {
	f.mac.Reset()
	f.buf = f.buf[:0]
	for _, part := range []string{resource.Group, resource.Resource, key.Namespace, key.Name, string(version.UID), version.Mark} {
		// No name can be continued by the next one.
		f.buf = binary.AppendUvarint(f.buf, uint64(len(part)))
		f.buf = append(f.buf, part...)
	}
	_, _ = f.mac.Write(f.buf)
	f.buf = f.mac.Sum(f.buf[:0])
	return binary.BigEndian.Uint64(f.buf)
}
