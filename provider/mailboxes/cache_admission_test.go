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

package mailboxes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

func TestAdmit(t *testing.T) {
	at := func(second int64, tie string, need int64) admissionCandidate {
		return admissionCandidate{created: time.Unix(second, 0), tieBreaker: tie, bytes: need}
	}
	for name, test := range map[string]struct {
		limits     Limits
		candidates []admissionCandidate
		want       []bool
	}{
		"no limits":                       {Limits{}, []admissionCandidate{at(1, "a", 1<<40), at(2, "b", 1<<40)}, []bool{true, true}},
		"none":                            {Limits{Objects: 1, Bytes: 1}, nil, []bool{}},
		"just enough":                     {Limits{Objects: 2, Bytes: 10}, []admissionCandidate{at(2, "b", 5), at(1, "a", 5)}, []bool{true, true}},
		"the oldest, by number":           {Limits{Objects: 1}, []admissionCandidate{at(2, "a", 5), at(1, "b", 5)}, []bool{false, true}},
		"the oldest, by bytes":            {Limits{Bytes: 9}, []admissionCandidate{at(2, "a", 5), at(1, "b", 5)}, []bool{false, true}},
		"of one second, by UID":           {Limits{Objects: 1}, []admissionCandidate{at(1, "b", 5), at(1, "a", 5)}, []bool{false, true}},
		"one too large for all":           {Limits{Bytes: 9}, []admissionCandidate{at(1, "a", 10), at(2, "b", 5)}, []bool{false, true}},
		"a smaller one in the free space": {Limits{Bytes: 9}, []admissionCandidate{at(1, "a", 5), at(2, "b", 5), at(3, "c", 4)}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			exceeded, _ := admit(test.limits, unlimited, test.candidates, false)
			NewWithT(t).Expect(admitted(exceeded)).To(Equal(test.want))
		})
	}
}

func unlimited(schema.GroupVersionResource) Limits { return Limits{} }

func admitted(exceeded []exceededLimit) []bool {
	admitted := make([]bool, len(exceeded))
	for i, by := range exceeded {
		admitted[i] = by == withinLimits
	}
	return admitted
}

// A resource has limits within the mailbox's limits. Objects beyond them take no room from other resources.
func TestAdmitOfAResource(t *testing.T) {
	of := func(resource schema.GroupVersionResource, second, need int64) admissionCandidate {
		return admissionCandidate{resource: resource, created: time.Unix(second, 0), bytes: need, identityBytes: 1}
	}
	for name, test := range map[string]struct {
		limits, ofSecrets Limits
		candidates        []admissionCandidate
		want              []exceededLimit
		admitsAt          int64
	}{
		"none of its own": {
			Limits{}, Limits{}, []admissionCandidate{of(secrets, 1, 9), of(secrets, 2, 9)}, []exceededLimit{withinLimits, withinLimits}, math.MaxInt64,
		},
		"the oldest, by number": {
			Limits{}, Limits{Objects: 1}, []admissionCandidate{of(secrets, 2, 9), of(secrets, 1, 9), of(configMaps, 3, 9)}, []exceededLimit{resourceLimit, withinLimits, withinLimits}, math.MaxInt64,
		},
		"the oldest, by bytes, to which identities do not count": {
			Limits{}, Limits{Bytes: 10}, []admissionCandidate{of(secrets, 1, 9), of(secrets, 2, 9), of(secrets, 3, 1)}, []exceededLimit{withinLimits, resourceLimit, withinLimits}, math.MaxInt64,
		},
		"objects beyond them take no room": {
			Limits{Objects: 2}, Limits{Objects: 1}, []admissionCandidate{of(secrets, 1, 9), of(secrets, 2, 9), of(configMaps, 3, 9), of(configMaps, 4, 9)},
			[]exceededLimit{withinLimits, resourceLimit, withinLimits, mailboxLimit}, math.MaxInt64,
		},
		"its identity takes room": {
			Limits{Bytes: 20}, Limits{Objects: 1}, []admissionCandidate{of(secrets, 1, 9), of(secrets, 2, 9), of(configMaps, 3, 9), of(configMaps, 4, 9)},
			[]exceededLimit{withinLimits, resourceLimit, withinLimits, mailboxLimit}, 28,
		},
		"never beyond the mailbox's": {
			Limits{Objects: 1}, Limits{Objects: 3}, []admissionCandidate{of(configMaps, 1, 9), of(secrets, 2, 9)}, []exceededLimit{withinLimits, mailboxLimit}, math.MaxInt64,
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitsOf := func(resource schema.GroupVersionResource) Limits {
				if resource == secrets {
					return test.ofSecrets
				}
				return Limits{}
			}
			exceeded, admitsAt := admit(test.limits, limitsOf, test.candidates, false)
			NewWithT(t).Expect(exceeded).To(Equal(test.want))
			NewWithT(t).Expect(admitsAt).To(Equal(test.admitsAt))
		})
	}
}

// No config is in force that is younger than a config for which there is no room.
func TestAdmitInTurn(t *testing.T) {
	candidates := []admissionCandidate{
		{created: time.Unix(3, 0), bytes: 1}, {created: time.Unix(2, 0), tieBreaker: "b", bytes: 8}, {created: time.Unix(1, 0), bytes: 5}, {created: time.Unix(2, 0), tieBreaker: "a", bytes: 1},
	}
	inTurn, _ := admit(Limits{Bytes: 9}, unlimited, candidates, true)
	NewWithT(t).Expect(admitted(inTurn)).To(Equal([]bool{false, false, true, true}))
	inAnyTurn, _ := admit(Limits{Bytes: 9}, unlimited, candidates, false)
	NewWithT(t).Expect(admitted(inAnyTurn)).To(Equal([]bool{true, false, true, true}))
}

// The order of the candidates does not matter: the same ones are admitted, no more than the limits allow, and none of the
// refused ones would fit.
func TestAdmitIsAFunctionOfTheSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	for range 500 {
		limits := Limits{Objects: random.Int64N(6), Bytes: random.Int64N(60)}
		own := Limits{Objects: random.Int64N(4), Bytes: random.Int64N(40)}
		limitsOf := func(resource schema.GroupVersionResource) Limits {
			if resource == secrets {
				return own
			}
			return Limits{}
		}
		candidates := make([]admissionCandidate, random.IntN(12))
		for i := range candidates {
			candidates[i] = admissionCandidate{created: time.Unix(random.Int64N(4), 0), tieBreaker: fmt.Sprint(i), bytes: random.Int64N(30)}
			candidates[i].resource = []schema.GroupVersionResource{configMaps, secrets}[random.IntN(2)]
		}
		inOrder := func() []string {
			exceeded, _ := admit(limits, limitsOf, candidates, false)
			return checkAdmission(t, limits, own, candidates, exceeded)
		}
		before := inOrder()
		random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		if after := inOrder(); !slices.Equal(before, after) {
			t.Fatalf("%+v, %+v: %v are admitted, then %v", limits, own, before, after)
		}
	}
}

// Candidates that all fit need no order: all of them are admitted, and a higher limit would admit no more.
func TestObjectsWithinTheLimitAreAdmitted(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test that can be repeated
	sources := []*wildcardInformer{{cacheRules: &cacheRules{resource: configMaps}}, {cacheRules: &cacheRules{resource: secrets}}}
	fitting := 0
	for range 500 {
		limits := Limits{Objects: random.Int64N(12), Bytes: random.Int64N(120)}
		limitsOf := func(resource schema.GroupVersionResource) Limits {
			if resource == secrets {
				return Limits{Objects: limits.Objects / 2, Bytes: limits.Bytes / 2}
			}
			return Limits{}
		}
		all := make([]cacheEntry, random.IntN(10))
		candidates := make([]admissionCandidate, len(all))
		for i := range all {
			size := random.Int64N(20)
			all[i] = cacheEntry{cachedObject: newCachedObject(nil, size), source: sources[random.IntN(2)]}
			candidates[i] = admissionCandidate{resource: all[i].source.resource, bytes: size}
		}
		exceeded, admitsAt := admit(limits, limitsOf, candidates, false)
		fits := fitsWhole(limits, limitsOf, all)
		if isAdmitted := !slices.Contains(admitted(exceeded), false); fits != isAdmitted {
			t.Fatalf("%+v: %+v: it fits: %v, but all are admitted: %v", limits, candidates, fits, isAdmitted)
		}
		if fits {
			fitting++
			NewWithT(t).Expect(admitsAt).To(BeEquivalentTo(math.MaxInt64))
		}
	}
	if fitting < 50 || fitting > 450 {
		t.Errorf("of 500 sets %d fit", fitting)
	}
}

// checkAdmission fails if more is admitted than the limits allow, or if a candidate is refused that fits. own are the limits
// of secrets. It returns the admitted candidates.
func checkAdmission(t *testing.T, limits, own Limits, candidates []admissionCandidate, exceeded []exceededLimit) (admitted []string) {
	t.Helper()
	all, ofSecrets := objectCounts{}, objectCounts{}
	for i, one := range candidates {
		if exceeded[i] != withinLimits {
			continue
		}
		admitted = append(admitted, one.tieBreaker)
		all.objects, all.bytes = all.objects+1, all.bytes+one.bytes
		if one.resource == secrets {
			ofSecrets.objects, ofSecrets.bytes = ofSecrets.objects+1, ofSecrets.bytes+one.bytes
		}
	}
	if limits.exceededBy(all.admitted()) || own.exceededBy(ofSecrets.admitted()) {
		t.Fatalf("%+v, %+v: %+v are admitted, among them %+v secrets", limits, own, all, ofSecrets)
	}
	for i, one := range candidates {
		fits := !limits.exceededBy(all.objects+1, all.bytes+one.bytes)
		fitsOwn := one.resource != secrets || !own.exceededBy(ofSecrets.objects+1, ofSecrets.bytes+one.bytes)
		if exceeded[i] == mailboxLimit && fits || exceeded[i] == resourceLimit && fitsOwn {
			t.Fatalf("%+v, %+v: there is room for %+v besides %+v, among them %+v secrets", limits, own, one, all, ofSecrets)
		}
	}
	slices.Sort(admitted)
	return admitted
}

// labelPolicy is a policy that selects objects with a label.
type labelPolicy struct {
	limits    Limits
	isUnknown bool
	configs   Limits
}

func (p *labelPolicy) Selects(_ Reader, _ logicalcluster.Name, _ schema.GroupVersionResource, object *unstructured.Unstructured) (selected, known bool) {
	return p.isUnknown || object.GetLabels()["selected"] == "yes", !p.isUnknown
}
func (p *labelPolicy) Limits(logicalcluster.Name) Limits { return p.limits }
func (p *labelPolicy) ConfigLimits() Limits              { return p.configs }
func (p *labelPolicy) RetainedAnnotations() []string     { return []string{"example.com/mark"} }

// testInformer plays the informer of one resource for a watching.
type testInformer struct {
	*wildcardInformer
	owner   *Mailboxes
	handler cache.ResourceEventHandler
	events  []Event
}

func newTestInformer(t *testing.T, policy CachePolicy) *testInformer {
	t.Helper()
	owner := New(Options{Workspace: "root:synchub", Export: "mailbox", Policy: policy, Clock: testclock.NewFakeClock(time.Unix(1_000, 0)), Log: logr.Discard()})
	t.Cleanup(owner.parts.reviews.queue.ShutDown)
	endpoint := &endpoint{ctx: t.Context(), parts: owner.parts, clients: noClients(), schemas: newSchemaTracker(), informers: map[schema.GroupVersionResource]*wildcardInformer{}}
	return newTestInformerAt(t, owner, endpoint, configMaps)
}

// newTestInformerAt plays the informer of a resource at an endpoint.
func newTestInformerAt(t *testing.T, owner *Mailboxes, endpoint *endpoint, resource schema.GroupVersionResource) *testInformer {
	t.Helper()
	c := &testInformer{wildcardInformer: newWildcardInformer(endpoint, resource), owner: owner}
	endpoint.informers[resource] = c.wildcardInformer
	c.handler = c.countingHandler(endpoint.eventHandler(resource))
	t.Cleanup(owner.Subscribe(resource, here, c))
	return c
}

func (c *testInformer) OnEvent(event Event)                   { c.events = append(c.events, event) }
func (c *testInformer) OnAbsenceDecided(types.NamespacedName) {}
func (c *testInformer) OnReset()                              {}

// update handles an object as the informer handles an event.
func (c *testInformer) update(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	made, err := c.transform(object)
	if err != nil {
		t.Fatal(err)
	}
	before, exists, _ := c.shared.GetIndexer().Get(made)
	if err := c.shared.GetIndexer().Add(made); err != nil {
		t.Fatal(err)
	}
	if exists {
		c.handler.OnUpdate(before, made)
	} else {
		c.handler.OnAdd(made, false)
	}
	return toObject(made)
}

func (c *testInformer) remove(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	made, _ := c.transform(object)
	if err := c.shared.GetIndexer().Delete(made); err != nil {
		t.Fatal(err)
	}
	c.handler.OnDelete(made)
}

// configMapOf returns a ConfigMap of about the given size. Its name determines its creation time.
func configMapOf(name string, size int, labels map[string]string) *unstructured.Unstructured {
	made := object(here, name)
	made.SetUID(types.UID(name))
	made.SetLabels(labels)
	annotations := made.GetAnnotations()
	annotations["example.com/mark"], annotations["example.com/note"], annotations[lastAppliedAnnotation] = "m", "n", strings.Repeat("y", size)
	made.SetAnnotations(annotations)
	made.Object["data"] = map[string]any{"entry": strings.Repeat("x", size)}
	return made
}

var selectedLabel = map[string]string{"selected": "yes"}

// An object that no config selects is cached as metadata only, and one beyond the limits as identity only.
func TestProjections(t *testing.T) {
	g := NewWithT(t)
	policy := &labelPolicy{limits: Limits{Bytes: 50_000}}
	c := newTestInformer(t, policy)
	whole := c.update(t, configMapOf("a", 10_000, selectedLabel))
	g.Expect(ProjectionOf(whole)).To(Equal(FullObject))
	g.Expect(whole.Object).To(HaveKey("data"))

	unselected := c.update(t, configMapOf("b", 10_000, map[string]string{"selected": "no"}))
	g.Expect(ProjectionOf(unselected)).To(Equal(MetadataOnly))
	g.Expect(unselected.Object).NotTo(HaveKey("data"))
	g.Expect(unselected.GetLabels()).To(HaveKeyWithValue("selected", "no"))
	g.Expect(unselected.GetAnnotations()).To(And(HaveKeyWithValue("example.com/note", "n"), Not(HaveKey(lastAppliedAnnotation))))
	g.Expect(mailboxOf(unselected)).To(BeEquivalentTo(here))

	identityOnly := c.update(t, configMapOf("c", 20_000, selectedLabel))
	g.Expect(ProjectionOf(identityOnly)).To(Equal(IdentityOnly))
	g.Expect(identityOnly.GetLabels()).To(BeEmpty())
	g.Expect(identityOnly.GetAnnotations()).To(And(HaveKeyWithValue("example.com/mark", "m"), Not(HaveKey("example.com/note"))))
	g.Expect(mailboxOf(identityOnly)).To(BeEquivalentTo(here))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(BeZero(), "no review before an object is deleted")

	failure := c.owner.Limits.MailboxLimitError(here)
	g.Expect(failure.Objects).To(BeEquivalentTo(3))
	g.Expect(failure.IdentityOnly).To(BeEquivalentTo(1))
	g.Expect(failure).To(MatchError(ContainSubstring("but may have 50000")))

	c.remove(t, configMapOf("a", 10_000, selectedLabel))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(Equal(1), "there is room")
}

// The counts match the cache however objects change, and are zero when all objects are gone.
func TestUsageFollowsTheCache(t *testing.T) {
	for name, own := range map[string]Limits{"the mailbox": {}, "a resource by number": {Objects: 4}, "a resource by bytes": {Bytes: 12_000}} {
		t.Run("limits of "+name, func(t *testing.T) { expectUsageFollowsTheCache(t, own) })
	}
}

func expectUsageFollowsTheCache(t *testing.T, own Limits) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test that can be repeated
	policy := &labelPolicy{limits: Limits{Objects: 6, Bytes: 30_000}}
	c := newTestInformer(t, policy)
	c.owner.Limits.SetResourceLimits(map[schema.GroupVersionResource]Limits{configMaps: own})
	expect := func(when string) {
		var objects, identityOnly, exceeded, identities, all int64
		for _, entry := range c.shared.GetIndexer().List() {
			held := toObject(entry)
			objects++
			all += cachesize.SizeOf(held)
			if ProjectionOf(held) == IdentityOnly {
				identityOnly++
				identities += cachesize.SizeOf(held)
			}
			if exceededLimitOf(held) == resourceLimit {
				exceeded++
			}
		}
		usage := c.owner.parts.usages.of(here, false)
		g.Expect([]int64{usage.objects, usage.identityOnly, usage.resourceLimited, usage.bytes, usage.identityBytes}).To(Equal([]int64{objects, identityOnly, exceeded, all, identities}), when)
		if objects > 0 {
			g.Expect(*usage.resources[configMaps]).To(Equal(usage.objectCounts), when)
		}
		g.Expect([]int64{c.counted.size.Objects(), c.counted.size.Bytes()}).To(Equal([]int64{objects, all}), when)
		g.Expect(policy.limits.exceededBy(objects-identityOnly, all-identities)).To(BeFalse(), when)
		g.Expect(own.exceededBy(objects-identityOnly, all-identities)).To(BeFalse(), when)
	}
	for step := range 400 {
		name := fmt.Sprint(random.IntN(12))
		made := configMapOf(name, random.IntN(8_000), map[string]string{"selected": []string{"yes", "no"}[random.IntN(2)]})
		if random.IntN(4) == 0 {
			c.remove(t, made)
		} else {
			c.update(t, made)
		}
		expect(fmt.Sprint("step ", step))
	}
	for _, entry := range c.shared.GetIndexer().List() {
		c.remove(t, toObject(entry).DeepCopy())
	}
	usage := c.owner.parts.usages.of(here, false)
	g.Expect(usage.objectCounts).To(Equal(objectCounts{}))
	g.Expect([]int{len(usage.resources), len(c.counted.byUID)}).To(Equal([]int{0, 0}))
}

// A list is bounded while it is being read, although its objects count only once it is complete.
func TestAListIsBounded(t *testing.T) {
	g := NewWithT(t)
	c := newTestInformer(t, &labelPolicy{limits: Limits{Bytes: 50_000}})
	c.admission.beginList()
	var made []*cachedObject
	whole := 0
	for number := range 20 {
		listed, err := c.transform(configMapOf(fmt.Sprint(number), 5_000, selectedLabel))
		g.Expect(err).NotTo(HaveOccurred())
		made = append(made, listed.(*cachedObject))
		if ProjectionOf(toObject(listed)) == FullObject {
			whole++
		}
	}
	g.Expect(whole).To(Equal(4))
	for _, listed := range made {
		g.Expect(c.shared.GetIndexer().Add(listed)).To(Succeed())
		c.handler.OnAdd(listed, true)
	}
	g.Expect(c.admission.isListing()).To(BeFalse())

	c.admission.beginList()
	for number := range 20 {
		listed, _ := c.transform(configMapOf(fmt.Sprint(number), 5_000, selectedLabel))
		g.Expect(ProjectionOf(toObject(listed))).To(Equal(ProjectionOf(toObject(made[number]))), "the same list again changes nothing")
	}
}

// While the configs are unknown, all objects are cached whole, and reviewed later.
func TestUnknownConfigs(t *testing.T) {
	g := NewWithT(t)
	c := newTestInformer(t, &labelPolicy{isUnknown: true})
	g.Expect(ProjectionOf(c.update(t, configMapOf("a", 10, nil)))).To(Equal(FullObject))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(Equal(1))
}

// A tenant cannot make the hub treat a cached object as a projection.
func TestAForgedProjection(t *testing.T) {
	g := NewWithT(t)
	forged := configMapOf("a", 10, selectedLabel)
	forged.Object[projectionField] = "Identity"
	held := newTestInformer(t, &labelPolicy{}).update(t, forged)
	g.Expect(ProjectionOf(held)).To(Equal(FullObject))
	g.Expect(held.Object).NotTo(HaveKey(projectionField))
}
