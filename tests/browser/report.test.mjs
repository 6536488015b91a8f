// The HTML report in real Chromium: no errors, no requests, nothing wider than the screen, nothing overlapping, no blank
// chart, in light and dark, on wide and narrow screens.
import assert from "node:assert/strict";
import {readFileSync, statSync} from "node:fs";
import {resolve} from "node:path";
import {after, before, test} from "node:test";
import {chromium} from "playwright-core";

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
let browser;
before(async () => { browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: flags}); });
after(async () => { await browser?.close(); });

const path = (name) => resolve(name + ".html");

// Opens a report; whatever the page complains about, or asks the network for, is in `faults`.
async function open(name, width = 1440, colorScheme = "light") {
  const page = await browser.newPage({viewport: {width, height: 900}, colorScheme});
  page.faults = [];
  page.on("console", (message) => { if (message.type() !== "log") page.faults.push(message.text()); });
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("request", (request) => { if (!request.url().startsWith("file:")) page.faults.push(request.url()); });
  page.on("dialog", (dialog) => { page.faults.push("dialog: " + dialog.message()); dialog.dismiss(); });
  await page.goto("file://" + path(name));
  // Two frames: the timeline draws in the first after load.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page;
}

// Every canvas with the number of different colours in it (sampled), 1 for a blank one.
const canvasColours = (page) => page.evaluate(() => [...document.querySelectorAll("canvas")].map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 24 | data[i + 1] << 16 | data[i + 2] << 8 | data[i + 3]) >>> 0);
  return {name: canvas.closest("[id]").id + " " + canvas.className, colours: seen.size};
}));

// Pairs of boxes that overlap by more than a pixel.
const overlaps = (page, selector) => page.evaluate((wanted) => {
  const boxes = [...document.querySelectorAll(wanted)].map((node) => [node.textContent.slice(0, 40), node.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0);
  const out = [];
  boxes.forEach(([nameA, a], i) => boxes.slice(i + 1).forEach(([nameB, b]) => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
      out.push(nameA + " / " + nameB);
  }));
  return out;
}, selector);

for (const name of ["pipeline", "minimal", "hostile"])
  for (const width of [1440, 768, 360])
    for (const scheme of ["light", "dark"])
      test(`${name} at ${width} px in ${scheme} is whole: no fault, no overflow, no overlap, no blank chart`, async () => {
        const page = await open(name, width, scheme);
        assert.deepEqual(page.faults, []);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
        const outside = await page.evaluate(() => [...document.querySelectorAll("main *, header *, .cards *")]
          .filter((node) => !node.closest(".scroll, pre, .timeline, .chart") && node.getBoundingClientRect().right > innerWidth + 1)
          .map((node) => node.tagName + ": " + node.textContent.slice(0, 40)));
        assert.deepEqual(outside, []);
        for (const selector of [".card", ".card h2, .card .big, .card .meter, .card p", "section", ".facts dt, .facts dd",
          "section h2, section .lead", ".gain b, .gain .amount", ".legend li, .tools button, .tools .hint"])
          assert.deepEqual(await overlaps(page, selector), [], selector);
        // A background and at least a fill, a grid or text colour: more than one colour each.
        for (const canvas of await canvasColours(page)) assert.ok(canvas.colours > 2, canvas.name + " is blank");
        await page.close();
      });

test("the pipeline report draws every chart, and the minimal one says why a chart is not there", async () => {
  const full = await open("pipeline");
  const charts = await full.evaluate(() => [...document.querySelectorAll(".chart, .timeline")]
    .map((node) => [node.id, node.querySelectorAll("canvas").length]));
  assert.deepEqual(charts, [["chart-step", 1], ["timeline-view", 3], ["chart-memory", 1], ["chart-memory-time", 1],
    ["chart-communication", 1]]);
  const least = await open("minimal");
  assert.deepEqual(await least.evaluate(() => [...document.querySelectorAll(".nothing")].map((node) => node.textContent)), [
    "No replay was made for this run.", "No timeline was recorded for this run.",
    "This plan has no collectives.", "Verification was not run: the plan was only timed.", "The result names no assumptions."]);
});

test("names from a scenario stay text", async () => {
  const page = await open("hostile");
  assert.ok((await page.title()).startsWith("</script><script>document.title='broken'</script>"));
  assert.ok((await page.textContent("h1")).startsWith("</script><script>document.title='broken'</script> \"quotes\" & 'apostrophes'"));
  assert.equal(await page.locator("h1 *, .facts dd *, main i, main img, a[href^=javascript]").count(), 0);
  assert.equal(await page.locator("script").count(), 4);  // data, charts library, charts, timeline
});

test("every headline number has its unit", async () => {
  const page = await open("pipeline");
  assert.deepEqual(await page.locator(".card .big").allTextContents(),
    ["5.2\u00a0s", "44,111\u00a0tokens/s", "45.4\u00a0%", "60\u00a0GiB", "passed"]);
});

test("the timeline zooms by button and key, moves, explains a bar, and shows the whole step again", async () => {
  const page = await open("pipeline");
  const picture = () => page.evaluate(() => document.querySelector(".lanes canvas").toDataURL());
  const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const whole = await picture();
  await page.click("[data-zoom=in]");
  await settle();
  const near = await picture();
  assert.notEqual(near, whole);
  await page.focus("#timeline-view");
  await page.keyboard.press("ArrowRight");
  await settle();
  assert.notEqual(await picture(), near);
  await page.click("[data-zoom=all]");
  await settle();
  assert.equal(await picture(), whole);
  // The first bar of stage 0: the heading is 24 px high, its lane 20 px; lane names take 136 px.
  await page.locator(".lanes").hover({position: {x: 140, y: 34}});
  const lines = await page.locator(".tip > *").allTextContents();
  assert.equal(lines[1].split(" · ")[0], "compute, forward");
  assert.match(lines[1], /^compute, forward · [0-9.]+ us$|^compute, forward · [0-9.]+ ms$/);
  assert.match(lines[2], /^layer \d+, microbatch 0$/);
  assert.equal(lines[4], "compute of stage 0");
  assert.deepEqual(page.faults, []);
});

test("charts follow a change from light to dark and of the window's width", async () => {
  const page = await open("pipeline", 1440, "light");
  const picture = () => page.evaluate(() => document.querySelector("#chart-step canvas").toDataURL());
  const light = await picture();
  await page.emulateMedia({colorScheme: "dark"});
  await page.waitForFunction((old) => document.querySelector("#chart-step canvas").toDataURL() !== old, light);
  await page.setViewportSize({width: 360, height: 900});
  await page.waitForFunction(() => document.querySelector("#chart-step canvas").getBoundingClientRect().width < 340);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  assert.deepEqual(page.faults, []);
});

test("headings go down one level at a time, and everything that draws has a name", async () => {
  const page = await open("pipeline");
  const levels = await page.evaluate(() => [...document.querySelectorAll("h1, h2, h3")].map((node) => Number(node.tagName[1])));
  assert.equal(levels.filter((level) => level === 1).length, 1);
  levels.forEach((level, i) => assert.ok(i === 0 ? level === 1 : level - levels[i - 1] <= 1));
  assert.equal(await page.locator("[role=img]:not([aria-label]), section:not([aria-labelledby]), button:empty").count(), 0);
});

test("the page is one file below 1.5 MB without a word that loads anything", () => {
  assert.ok(statSync(path("pipeline")).size < 1.5e6);
  const text = readFileSync(path("pipeline"), "utf8");
  const ours = text.slice(0, text.indexOf("<script type=\"application/json\""));
  assert.doesNotMatch(ours, /(src|href)="(?!#|data:,")|@import|url\(/);
});
