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

package targets

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// identityOf returns the identity of a connection to the server x, which must lead to the expected cluster.
func identityOf(expected ExpectedCluster) *clusterIdentity {
	return &clusterIdentity{server: "x", expected: expected}
}

// A cluster is known after it was verified, or while it is trusted: then the server must be the one that led to the cluster before, and its
// ID known.
func TestClusterIsKnown(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	trusted := func(cluster Cluster, until time.Duration) ExpectedCluster {
		return ExpectedCluster{Cluster: cluster, TrustedUntil: now.Add(until)}
	}
	for name, test := range map[string]struct {
		identity *clusterIdentity
		want     Cluster
		known    bool
	}{
		"unknown":                       {identityOf(ExpectedCluster{}), Cluster{}, false},
		"trusted":                       {identityOf(trusted(Cluster{"a", "x"}, 1)), Cluster{"a", "x"}, true},
		"trusted until now":             {identityOf(trusted(Cluster{"a", "x"}, 0)), Cluster{}, false},
		"trusted at another server":     {identityOf(trusted(Cluster{"a", "y"}, 1)), Cluster{}, false},
		"trusted without an ID":         {identityOf(trusted(Cluster{"", "x"}, 1)), Cluster{}, false},
		"verified":                      {&clusterIdentity{server: "x", id: "a", verifiedUntil: now.Add(1)}, Cluster{"a", "x"}, true},
		"verified until now":            {&clusterIdentity{server: "x", id: "a", verifiedUntil: now}, Cluster{}, false},
		"verified, without an ID":       {&clusterIdentity{server: "x", expected: trusted(Cluster{"a", "x"}, 0), verifiedUntil: now.Add(1)}, Cluster{"a", "x"}, true},
		"verified, another one trusted": {&clusterIdentity{server: "x", id: "b", expected: trusted(Cluster{"a", "x"}, 1), verifiedUntil: now.Add(1)}, Cluster{"b", "x"}, true},
	} {
		got, _, known := test.identity.get(now)
		if got != test.want || known != test.known {
			t.Errorf("%s: got %+v, %t", name, got, known)
		}
	}
}

// An answer counts only if nothing has happened since the request, and only from the expected cluster. The first one is the expected one.
func TestAnswersAboutTheCluster(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1_000_000, 0)
	identity := identityOf(ExpectedCluster{})
	isKnown := func() bool {
		_, _, known := identity.get(now)
		return known
	}
	_, generation, _ := identity.get(now)
	identity.invalidate()
	g.Expect(identity.setVerified("a", generation, now.Add(time.Minute))).To(Succeed())
	g.Expect(isKnown()).To(BeFalse(), "the answer is outdated")
	_, generation, _ = identity.get(now)
	g.Expect(identity.setVerified("a", generation, now.Add(time.Minute))).To(Succeed())
	g.Expect(isKnown()).To(BeTrue())

	var mismatch *ClusterMismatchError
	err := identity.setVerified("b", generation, now.Add(time.Hour))
	g.Expect(errors.As(err, &mismatch)).To(BeTrue(), "%v", err)
	g.Expect(*mismatch).To(Equal(ClusterMismatchError{Expected: Cluster{"a", "x"}, Observed: Cluster{"b", "x"}}))
	now = now.Add(time.Minute)
	g.Expect(isKnown()).To(BeFalse(), "the answer of another cluster was accepted")
	g.Expect(identity.setVerified("", generation, now.Add(time.Minute))).To(Succeed(), "the same server without an ID")
	g.Expect(identity.expected.Cluster).To(Equal(Cluster{"a", "x"}))
}

// After an invalidation neither an earlier answer counts nor the trust of an earlier hub.
func TestInvalidateEndsTrust(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, identity := range map[string]*clusterIdentity{
		"trusted":  identityOf(ExpectedCluster{Cluster{"a", "x"}, now.Add(time.Hour)}),
		"verified": {server: "x", id: "a", verifiedUntil: now.Add(time.Hour)},
	} {
		if _, _, known := identity.get(now); !known {
			t.Errorf("%s: not known before", name)
		}
		identity.invalidate()
		if _, _, known := identity.get(now); known {
			t.Errorf("%s: still known", name)
		}
	}
}

// Another expected cluster must be verified at once. The same cluster at another address, or no cluster, changes nothing.
func TestSetExpectedCluster(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		expected Cluster
		again    bool
		want     Cluster
	}{
		"no cluster":                   {Cluster{}, false, Cluster{"a", "x"}},
		"the same":                     {Cluster{"a", "x"}, false, Cluster{"a", "x"}},
		"the same at another address":  {Cluster{"a", "y"}, false, Cluster{"a", "y"}},
		"another":                      {Cluster{"b", "x"}, true, Cluster{"b", "x"}},
		"another that hides its ID":    {Cluster{"", "y"}, true, Cluster{"", "y"}},
		"the same server, without ID.": {Cluster{"", "x"}, true, Cluster{"", "x"}},
	} {
		identity := identityOf(ExpectedCluster{Cluster: Cluster{"a", "x"}})
		identity.id, identity.verifiedUntil = "a", now.Add(time.Hour)
		again := identity.setExpected(ExpectedCluster{Cluster: test.expected, TrustedUntil: now.Add(time.Hour)})
		_, _, known := identity.get(now)
		if again != test.again || known == test.again || identity.expected.Cluster != test.want {
			t.Errorf("%s: again %t, known %t, %+v", name, again, known, identity.expected)
		}
	}
}

// With HTTP/2 each network connection after the first replaces another. With HTTP/1.1 only a connection that is opened while no
// other is open does so.
func TestConnectionsThatReplaceAnother(t *testing.T) {
	for _, test := range []struct {
		multiplexed bool
		// events are o for a connection that is opened, and c for one that is closed. want are the answers to each o.
		events, want string
	}{
		{false, "ooo", "nnn"}, {false, "ococ", "ny"}, {false, "oocco", "nny"}, {false, "ooco", "nnn"}, {true, "oo", "ny"}, {true, "oco", "ny"},
	} {
		identity, got := &clusterIdentity{multiplexed: test.multiplexed}, ""
		for _, event := range test.events {
			if event == 'c' {
				identity.connectionClosed()
				continue
			}
			got += map[bool]string{true: "y", false: "n"}[identity.connectionOpened()]
		}
		if got != test.want {
			t.Errorf("multiplexed %t, %s: want %s, got %s", test.multiplexed, test.events, test.want, got)
		}
	}
}

// The fingerprint of a server changes with its address, its name and its authorities.
func TestServerFingerprint(t *testing.T) {
	fingerprints := map[string]rest.Config{}
	for _, config := range []rest.Config{
		{Host: "https://a"}, {Host: "https://b"}, {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{ServerName: "n"}},
		{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}, {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("cb")}},
	} {
		fingerprint := serverFingerprint(&config)
		if other, ok := fingerprints[fingerprint]; ok || fingerprint != serverFingerprint(&config) {
			t.Errorf("%+v has the fingerprint of %+v", config, other)
		}
		fingerprints[fingerprint] = config
	}
}

// A probe requests the identity often enough to detect that a server stands for another cluster.
func TestIdentityInterval(t *testing.T) {
	if identityInterval > 10*time.Minute || identityTimeout >= probeTimeout {
		t.Errorf("%s, %s", identityInterval, identityTimeout)
	}
}
