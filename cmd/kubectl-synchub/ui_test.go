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

package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/tier"
)

// uiTest is a browser that shows the page of the world.
type uiTest struct {
	*uiWorld
	*browser
}

func TestUI(t *testing.T) {
	tier.Thorough(t)
	u := &uiTest{uiWorld: newUIWorld(t)}
	useConfig(t, framework.InWorkspace(u.kcp.HubConfig, uiInventory))
	u.browser = openBrowser(t, servePage(t, "--workspace", uiInventory, "--workspace", uiWorkload))
	u.resize(t, 1280, 760, false)
	t.Run("the fleet", u.showsFleet)
	t.Run("a cluster", u.showsTarget)
	t.Run("a placement", u.showsPlacement)
	t.Run("an object on its way", u.showsObject)
	t.Run("an object in a mailbox", u.showsMailboxObject)
	t.Run("a comparison", u.comparesObject)
	t.Run("events", u.showsEvents)
	t.Run("search", u.searches)
	t.Run("is accessible", u.isAccessible)
	t.Run("keyboard", u.followsKeys)
	t.Run("fits all windows", u.fitsWindows)
	t.Run("is live", u.isLive)
	u.verifyNoProblems(t)
}

const ducatRow = "tr[data-key$='/ducat']"

func (u *uiTest) showsFleet(t *testing.T) {
	g := NewWithT(t)
	g.Expect(u.texts(t, "tbody th")).To(Equal([]string{"ducat", "thaler", "guilder", "florin", "krone"}))
	g.Expect(u.texts(t, ".healths a")).To(Equal([]string{"✗ Not ready 1", "– Set aside 1", "! With problems 1", "✓ Healthy 2"}))
	g.Expect(u.texts(t, ducatRow+" td")).To(ContainElement("TargetUnreachable: dial tcp 10.0.0.7:6443: connect: connection refused"))
	g.Expect(evaluate[string](t, u.browser, "location.pathname + location.search")).To(Equal("/"))
	u.awaitText(t, "#connection", "Live")
	u.picture(t, "ui-clusters.png")
}

// isLive changes a SyncTarget while its row has the focus.
func (u *uiTest) isLive(t *testing.T) {
	u.open(t, "/")
	u.awaitText(t, "#connection", "Live")
	evaluate[any](t, u.browser, "window.unchanged = true; document.querySelector(`"+ducatRow+" a`).focus()")
	ducat := &edgev2alpha1.SyncTarget{}
	if err := u.inventory.Get(t.Context(), types.NamespacedName{Name: "ducat"}, ducat); err != nil {
		t.Fatal(err)
	}
	ducat.Status.Conditions[0].Status = "True"
	if err := u.inventory.Status().Update(t.Context(), ducat); err != nil {
		t.Fatal(err)
	}
	u.awaitText(t, ducatRow+" .state", "✓ Healthy")
	g := NewWithT(t)
	g.Expect(u.texts(t, "tbody th")).To(Equal([]string{"thaler", "guilder", "ducat", "florin", "krone"}))
	g.Expect(evaluate[bool](t, u.browser, "window.unchanged && document.activeElement === document.querySelector(`"+ducatRow+" a`)")).To(BeTrue())
}

func (u *uiTest) showsTarget(t *testing.T) {
	g := NewWithT(t)
	u.open(t, "/targets/"+uiInventory+"/florin")
	g.Expect(u.texts(t, "h1")).To(Equal([]string{"florin ✓ Healthy"}))
	g.Expect(u.texts(t, "h2")).To(Equal([]string{"Conditions", "Synced Resources", "Events"}))
	g.Expect(u.texts(t, "dl div")).To(ContainElements(MatchRegexp(`^Token ends in 6h5\dm, renewed 6\dm ago$`), MatchRegexp(`^Objects 42 synced, 0 failed, counted \d+s ago$`)))
	u.picture(t, "ui-cluster.png")
	u.open(t, "/targets/"+uiInventory+"/ducat")
	g.Expect(u.texts(t, "h1")).To(Equal([]string{"ducat ✗ Not ready"}))
	u.open(t, "/targets/"+uiInventory+absentPage)
	g.Expect(u.texts(t, "h1")).To(Equal([]string{"Not found"}))
}

func (u *uiTest) showsPlacement(t *testing.T) {
	g := NewWithT(t)
	u.open(t, "/placements")
	g.Expect(u.texts(t, "tbody th")).To(Equal([]string{"shop"}))
	u.run(t, chromedp.Click("tbody th a"), chromedp.WaitVisible(".matrix"))
	g.Expect(u.texts(t, "h1")).To(Equal([]string{"shop ✗ Failed"}))
	g.Expect(u.texts(t, "[aria-live=polite]")).To(ContainElement("Waiting for the rollout: 1 of 4 destinations have all objects as they are in the workspace."))
	g.Expect(u.texts(t, ".matrix thead th")).To(Equal([]string{"Object", "guilder", "ducat", "krone", "florin"}))
	g.Expect(u.texts(t, ".matrix tbody tr:first-child > *")).To(Equal([]string{"deployments.apps shop/web", "✗ Conflict", "… Syncing", "✓ Healthy", "✓ Healthy"}))
	g.Expect(u.texts(t, ".matrix tbody tr:nth-child(2) > *")).To(Equal([]string{"deployments.apps shop/cart", "✓ Healthy", "… WaitingForRollout", "… InProgress", "✓ Healthy"}))
	g.Expect(u.texts(t, "section[aria-label=History] tbody tr")).To(HaveExactElements(
		MatchRegexp(`^2 1 \d+s kubectl synchub rollout undo shop --to-revision=2$`), MatchRegexp(`^1 1 \d+s kubectl synchub rollout undo shop --to-revision=1$`)))
	u.picture(t, "ui-placement.png")
}

// showsObject follows the link of a healthy object from the workspace to the cluster.
func (u *uiTest) showsObject(t *testing.T) {
	g := NewWithT(t)
	u.run(t, chromedp.Click(".matrix tbody tr:first-child td:last-child a"), chromedp.WaitVisible(".steps"))
	g.Expect(u.texts(t, "h1")).To(Equal([]string{"deployments.apps shop/web"}))
	g.Expect(u.texts(t, "h3")).To(Equal([]string{"Workspace", "Connection", "Mailbox", "Cluster", "Related objects"}))
	g.Expect(u.texts(t, ".steps li")).To(ContainElements(
		"✓ Placement EdgePlacements select it: shop", HavePrefix("✓ Selected selected by SyncerConfig/shop"), HavePrefix("✓ Target"),
	))
	g.Expect(u.texts(t, ".result")).To(Equal([]string{"web is on florin, in sync with the mailbox."}))
	g.Expect(u.texts(t, "section[aria-label='Related objects'] tbody tr")).To(Equal([]string{"configmaps Mailbox deployments/settings shop/settings"}))
	g.Expect(u.texts(t, "section[aria-label=Clusters] tbody tr")).To(HaveExactElements(
		"guilder ✗ Conflict the cluster has another object of this name", "ducat … Syncing", "florin ✓ Healthy", "krone ✓ Healthy"))
	g.Expect(u.texts(t, "section[aria-label=Events] tbody tr")).To(HaveExactElements(MatchRegexp(`^Warning Conflict \d+s On guilder: the cluster has another object of this name$`)))
	g.Expect(u.texts(t, "code")).To(Equal([]string{"kubectl synchub explain florin deployments.apps shop/web"}))
	u.picture(t, "ui-object.png")
	u.run(t, chromedp.Click("section[aria-label=Clusters] tbody a"), chromedp.WaitVisible(".result.bad"))
	g.Expect(u.texts(t, ".result")).To(HaveExactElements(ContainSubstring("the cluster has another object of this name")))
}

func (u *uiTest) showsMailboxObject(t *testing.T) {
	u.open(t, "/targets/"+uiInventory+"/guilder")
	u.run(t, chromedp.Click("section[aria-label='Failed Objects'] tbody a"), chromedp.WaitVisible(".steps"))
	g := NewWithT(t)
	g.Expect(u.texts(t, "h2")).To(Equal([]string{"On guilder", "Events"}))
	g.Expect(u.texts(t, ".steps li")).To(ContainElement(HavePrefix("✓ SyncTarget")))
}

// comparesObject compares an object of the mailbox with its copy before and after somebody has changed the copy.
func (u *uiTest) comparesObject(t *testing.T) {
	g := NewWithT(t)
	u.open(t, "/object?workspace="+uiInventory+"&target=florin&resource=deployments.apps&namespace=shop&name=web")
	u.run(t, chromedp.Click("section[aria-label=Explanation] > p a"), chromedp.WaitVisible(".result"))
	g.Expect(u.texts(t, ".result")).To(Equal([]string{"The cluster has the object as the hub would write it."}))
	u.awaitText(t, "#connection", "Not live")
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if err := u.target.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 7}}`))); err != nil {
		t.Fatal(err)
	}
	u.run(t, chromedp.Reload(), chromedp.WaitVisible(".compared"))
	g.Expect(u.texts(t, "h2")).To(Equal([]string{"Update Deployment shop/web"}))
	g.Expect(u.texts(t, ".compared tbody tr")).To(Equal([]string{"spec.replicas 7 3"}))
	u.picture(t, "ui-compare.png")
	// The placement makes a copy with other marks, which are left out.
	u.open(t, comparedPage)
	g.Expect(u.texts(t, ".compared tbody tr")).To(Equal([]string{"spec.replicas 7 3"}))
	if err := u.target.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
		t.Fatal(err)
	}
	g.Expect(*web.Spec.Replicas).To(BeEquivalentTo(7), "a comparison writes nothing")
	u.open(t, strings.Replace(comparedPage, "target=florin", "target=ducat", 1))
	g.Expect(u.texts(t, ".problems li")).To(HaveExactElements(HavePrefix("the cluster cannot be asked: ")))
}

func (u *uiTest) showsEvents(t *testing.T) {
	u.open(t, "/events")
	g := NewWithT(t)
	g.Expect(u.texts(t, "tbody tr")).To(ConsistOf(
		MatchRegexp(`^SyncTarget ducat root:ui-inventory Warning TargetUnreachable \d+s The cluster does not answer\.$`),
		MatchRegexp(`^SyncTarget florin root:ui-inventory Normal Ready \d+s.* The hub syncs the cluster\.$`),
		MatchRegexp(`^Deployment shop/web root:ui-shop Warning Conflict \d+s On guilder: the cluster has another object of this name$`),
		HaveSuffix("<img src=x onerror=alert(1)>")))
	g.Expect(evaluate[int](t, u.browser, "document.querySelectorAll('main img').length")).To(BeZero(), "texts are escaped")
}

func (u *uiTest) searches(t *testing.T) {
	u.open(t, "/")
	g := NewWithT(t)
	u.run(t, chromedp.SendKeys("input", "l\r"), chromedp.WaitVisible("input[value=l]"))
	g.Expect(u.texts(t, "tbody th")).To(Equal([]string{"thaler", "guilder", "florin"}))
	u.run(t, chromedp.Click(".healths li:last-child a"), chromedp.WaitVisible(".healths [aria-current]"))
	g.Expect(u.texts(t, "tbody th")).To(Equal([]string{"florin"}))
}

// uiPages are the addresses of one page of each kind.
func uiPages() []string {
	return []string{
		"/", "/placements", "/events", "/targets/" + uiInventory + "/guilder", "/placements/" + uiWorkload + "/shop",
		"/object?workspace=" + uiWorkload + "&placement=shop&resource=deployments.apps&namespace=shop&name=web", comparedPage, absentPage,
	}
}

const comparedPage = "/compare?workspace=" + uiWorkload + "&placement=shop&target=florin&resource=deployments.apps&namespace=shop&name=web"

// isAccessible verifies what a screen reader gets of each page.
func (u *uiTest) isAccessible(t *testing.T) {
	for _, address := range uiPages() {
		u.open(t, address)
		count := map[string]int{}
		for _, node := range call(t, u.browser, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			if node.Ignored {
				continue
			}
			role := axText(node.Role)
			count[role]++
			if slices.Contains([]string{"link", "button", "searchbox", "region", "navigation", "columnheader", "rowheader", "heading", "progressbar"}, role) && axText(node.Name) == "" {
				t.Errorf("%s: a %s has no name", address, role)
			}
		}
		for _, role := range []string{"banner", "main", "status"} {
			if count[role] != 1 {
				t.Errorf("%s has %d times the role %s", address, count[role], role)
			}
		}
		g := NewWithT(t)
		g.Expect(u.texts(t, "h1")).To(HaveLen(1), address)
		g.Expect(u.texts(t, "thead th:not([scope=col]), tbody th:not([scope=row])")).To(BeEmpty(), address)
		g.Expect(evaluate[string](t, u.browser, "document.documentElement.lang + ' ' + document.title")).To(MatchRegexp("^en .+ - synchub$"), address)
	}
}

func axText(value *accessibility.Value) string {
	if value == nil {
		return ""
	}
	text, _ := strconv.Unquote(string(value.Value))
	return text
}

// followsKeys goes to the content with the first key, and follows a link there.
func (u *uiTest) followsKeys(t *testing.T) {
	u.open(t, "/")
	g := NewWithT(t)
	active := func() string { return evaluate[string](t, u.browser, "document.activeElement.textContent.trim()") }
	u.run(t, chromedp.KeyEvent(kb.Tab))
	g.Expect(active()).To(Equal("Skip to the content"))
	g.Expect(evaluate[float64](t, u.browser, "document.activeElement.getBoundingClientRect().left")).To(BeZero(), "it shows once it has the focus")
	u.run(t, chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	g.Expect(active()).To(Equal("✗ Not ready 1"))
	u.run(t, chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".healths [aria-current]"))
	g.Expect(u.texts(t, "tbody th")).To(Equal([]string{"ducat"}))
}

// fitsWindows opens the pages in windows of all sizes, light and dark.
func (u *uiTest) fitsWindows(t *testing.T) {
	g := NewWithT(t)
	grounds := map[bool]string{}
	for _, width := range []int64{390, 768, 1920} {
		for _, dark := range []bool{false, true} {
			u.resize(t, width, 900, dark)
			for _, address := range uiPages() {
				u.open(t, address)
				g.Expect(evaluate[int64](t, u.browser, "document.documentElement.scrollWidth")).To(BeNumerically("<=", width), "%s needs a wider window than %d", address, width)
			}
			grounds[dark] = evaluate[string](t, u.browser, "getComputedStyle(document.body).backgroundColor")
		}
		if width == 390 {
			u.open(t, "/placements/"+uiWorkload+"/shop")
			u.picture(t, "ui-phone.png")
		}
	}
	g.Expect(grounds[true]).NotTo(Equal(grounds[false]))
}
