// Draws the invocations of a replay. All text of others goes in as text, never as markup.
(function () {
    'use strict';
    const data = JSON.parse(document.getElementById('data').textContent);
    const KINDS = [
        { name: 'advance', text: 'done' },
        { name: 'checkpoint', text: 'partly done' },
        { name: 'retry', text: 'retry' },
        { name: 'bisect', text: 'cut in two' },
        { name: 'discard', text: 'given up' },
        { name: 'throttled', text: 'throttled' },
    ];
    const SVG = 'http://www.w3.org/2000/svg';
    const NUMBERS = new Intl.NumberFormat('en');
    const SIZES = [25, 50, 100, 400];
    const SMALL = 60;       // so many invocations are drawn without an overview
    const OPEN_SHARDS = 4;  // of more shards, those where something went wrong are open

    // ---- small helpers ----

    function element(name, attributes, ...children) {
        const e = document.createElement(name);
        for (const [key, value] of Object.entries(attributes || {}))
            e.setAttribute(key, value);
        e.append(...children);
        return e;
    }

    function svg(name, attributes, ...children) {
        const e = document.createElementNS(SVG, name);
        for (const [key, value] of Object.entries(attributes || {}))
            e.setAttribute(key, value);
        e.append(...children);
        return e;
    }

    // What cannot be seen is named, as in the tables (html.c). A line's end ends a line here.
    const HIDDEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

    function foreign(text) {
        const named = c => '\u2039U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '\u203a';
        return element('bdi', {}, text.replace(HIDDEN, named));
    }

    function many(n, what) {
        return NUMBERS.format(n) + ' ' + what + (n === 1 ? '' : 's');
    }

    function duration(ms) {
        if (ms < 120000)
            return (ms / 1000).toFixed(1) + ' s';
        return ms < 7200000 ? (ms / 60000).toFixed(1) + ' min' : (ms / 3600000).toFixed(1) + ' h';
    }

    // ---- the data ----

    const FIELDS = ['time', 'lane', 'first', 'last', 'n', 'cut', 'attempt', 'kind', 'final', 'answer', 'route', 'reason', 'firstId', 'lastId'];

    function rowOf(values, index) {
        const row = { index };
        FIELDS.forEach((name, i) => { row[name] = values[i]; });
        row.isTrouble = row.kind !== 0;
        return row;
    }

    // A final call has no records. Its place is after the last records that its lane had before it.
    function placeFinals(rows) {
        const ends = new Map();
        for (const row of rows) {
            if (row.n)
                ends.set(row.lane, Math.max(row.last + 1, ends.get(row.lane) || 0));
            else
                row.first = row.last = Math.max(0, (ends.get(row.lane) || 0) - 1);
        }
    }

    const shards = data.shards.map((shard, index) => {
        const rows = shard.rows.map(rowOf);
        placeFinals(rows);
        return { index, id: shard.id, n: shard.n, rows };
    });

    function stateName(row) {
        return (row.final ? 'final call: ' : '') + KINDS[row.kind].text;
    }

    function recordsText(row) {
        if (row.n === 0)
            return 'no records';
        const from = NUMBERS.format(row.first + 1), to = NUMBERS.format(row.last + 1);
        if (row.n === 1)
            return 'record ' + from;
        if (data.lanes > 1)
            return many(row.n, 'record') + ' between ' + from + ' and ' + to;
        return 'records ' + from + ' to ' + to + ' (' + NUMBERS.format(row.n) + ')';
    }

    // ---- the tooltip ----

    const tip = element('div', { class: 'tip', role: 'tooltip', id: 'tip', hidden: '' });
    let tipOf = null;

    function fact(list, name, ...value) {
        list.append(element('dt', {}, name), element('dd', {}, ...value));
    }

    function fillTip(row) {
        const list = element('dl');
        fact(list, 'Time', duration(row.time) + ' after the beginning');
        fact(list, 'Attempt', String(row.attempt));
        if (data.lanes > 1)
            fact(list, 'Lane', row.lane + 1 + ' of ' + data.lanes);
        fact(list, 'Records', recordsText(row));
        if (row.n === 1)
            fact(list, 'Sequence no.', foreign(row.firstId));
        else if (row.n)
            fact(list, 'Sequence no.', foreign(row.firstId), ' to ', foreign(row.lastId));
        if (row.kind === 1)
            fact(list, 'Done', many(row.cut, 'record'));
        if (row.kind === 3)
            fact(list, 'Halves', NUMBERS.format(row.cut) + ' and ' + many(row.n - row.cut, 'record'));
        fact(list, row.kind === 5 ? 'Refused' : 'Answer', foreign(data.texts[row.answer]));
        if (row.route)
            fact(list, 'Route', foreign(data.texts[row.route]));
        if (row.reason)
            fact(list, 'Reason', foreign(data.texts[row.reason]));
        const title = 'Invocation ' + NUMBERS.format(row.index + 1) + ': ' + stateName(row);
        tip.replaceChildren(element('b', {}, title), list);
    }

    function hideTip() {
        tip.hidden = true;
        if (tipOf) {
            tipOf.classList.remove('shown');
            tipOf.removeAttribute('aria-describedby');
        }
        tipOf = null;
    }

    function showTip(button, row) {
        if (tipOf === button)
            return;
        hideTip();
        fillTip(row);
        tip.hidden = false;
        tipOf = button;
        button.classList.add('shown');
        button.setAttribute('aria-describedby', 'tip');
        const box = button.getBoundingClientRect(), size = tip.getBoundingClientRect();
        const width = document.documentElement.clientWidth, height = window.innerHeight;
        const bar = button.querySelector('.bar').getBoundingClientRect();
        const left = Math.max(12, Math.min(bar.left, width - size.width - 12));
        const isAbove = box.bottom + size.height > height && box.top > size.height;
        tip.style.left = left + window.scrollX + 'px';
        tip.style.top = (isAbove ? box.top - size.height : box.bottom) + window.scrollY + 'px';
    }

    // ---- one line ----

    function glyph(name, attributes) {
        const use = svg('use', { href: '#g-' + name, ...attributes });
        use.classList.add('k-' + name);
        return use;
    }

    // Full: the window is done. Open: its final call failed, and the colour says how it goes on.
    function finalGlyph(row, attributes) {
        const shape = glyph(row.kind ? 'final-open' : 'final', attributes);
        if (row.kind)
            shape.setAttribute('class', 'k-' + KINDS[row.kind].name);
        return shape;
    }

    // A column for each lane, with the state's shape in the invocation's own.
    function laneColumns(row) {
        const picture = svg('svg', { class: 'lanes', 'aria-hidden': 'true' });
        for (let lane = 0; lane < data.lanes && data.lanes > 1; lane++) {
            const x = (lane + 0.5) / data.lanes * 100 + '%';
            picture.append(svg('line', { x1: x, x2: x, y1: 0, y2: 24 }));
        }
        const holder = svg('svg', { x: (row.lane + 0.5) / data.lanes * 100 + '%', overflow: 'visible' });
        const place = { x: -7, y: 5, width: 14, height: 14 };
        holder.append(row.final && row.kind !== 5 ? finalGlyph(row, place) : glyph(KINDS[row.kind].name, place));
        picture.append(holder);
        return picture;
    }

    function rect(from, to, range, attributes) {
        const width = range.to - range.from;
        const x = (from - range.from) / width * 100, w = (to - from) / width * 100;
        const e = svg('rect', { y: 5, height: 14, ...attributes });
        e.style.x = 'min(' + x + '%, calc(100% - 5px))';
        e.style.width = 'max(4px, calc(' + w + '% - 1px))';
        return e;
    }

    // Each state has a pattern of its own, so that it can be told without its colour.
    function bar(row, range) {
        const picture = svg('svg', { class: 'bar', 'aria-hidden': 'true' });
        const name = KINDS[row.kind].name, from = row.first, to = row.last + 1;
        const cut = row.n > 1 ? from + row.cut / row.n * (to - from) : from;
        const outline = { class: 'k-' + name, fill: 'none', stroke: 'currentColor' };
        if (row.n === 0) {
            const x = (to - range.from) / (range.to - range.from) * 100;
            const holder = svg('svg', { x: Math.min(Math.max(x, 3), 97) + '%', overflow: 'visible' });
            holder.append(finalGlyph(row, { x: -8, y: 4, width: 16, height: 16 }));
            picture.append(holder);
        } else if (row.kind === 0) {
            picture.append(rect(from, to, range, { class: 'k-advance', fill: 'currentColor' }));
        } else if (row.kind === 1) {
            picture.append(rect(from, to, range, { ...outline, fill: 'url(#p-checkpoint)' }));
            picture.append(rect(from, cut, range, { class: 'k-advance', fill: 'currentColor' }));
        } else if (row.kind === 3) {
            picture.append(rect(from, cut, range, outline), rect(cut, to, range, outline));
        } else if (row.kind === 5) {
            picture.append(rect(from, to, range, { ...outline, 'stroke-dasharray': '4 3' }));
        } else {
            picture.append(rect(from, to, range, { ...outline, fill: 'url(#p-' + name + ')' }));
        }
        return picture;
    }

    function line(row, range, isFirst) {
        const state = stateName(row) + (row.attempt > 1 ? ', attempt ' + row.attempt : '');
        const button = element('button', { class: 'grid', type: 'button', tabindex: isFirst ? 0 : -1 });
        const hidden = text => element('span', { class: 'hidden' }, text);
        button.append(laneColumns(row), element('span', { class: 'time' }, duration(row.time)),
            hidden(data.lanes > 1 ? ', lane ' + (row.lane + 1) + ', ' : ', '), element('span', { class: 'state' }, state),
            hidden(', ' + recordsText(row)), bar(row, range));
        button.row = row;
        return element('li', {}, button);
    }

    // ---- the axis ----

    function niceStep(width, most) {
        let step = 1;
        for (let i = 0; width / step > most; i++)
            step *= i % 3 === 1 ? 2.5 : 2;
        return step;
    }

    function laneNumbers() {
        const numbers = element('span', { class: 'numbers' });
        if (data.lanes > 1)
            numbers.append(element('span', {}, 'lane 1'), element('span', {}, String(data.lanes)));
        return numbers;
    }

    function axis(range, width) {
        const ticks = element('div', { class: 'ticks' }, element('span', {}, 'record in the shard →'));
        const span = range.to - range.from, step = niceStep(span, Math.max(1, Math.floor(width / 90)));
        const places = [range.from + 1];
        for (let at = Math.ceil((range.from + 1 + step * 0.6) / step) * step; at < range.to - step * 0.6; at += step)
            places.push(at);
        if (span > 1)
            places.push(range.to);
        for (const place of places) {
            const tick = element('i', {}, NUMBERS.format(place));
            tick.style.left = (place === range.to ? 100 : (place - 1 - range.from) / span * 100) + '%';
            ticks.append(tick);
        }
        const head = element('div', { class: 'axis grid', 'aria-hidden': 'true' });
        head.append(laneNumbers(), element('span', { class: 'time' }, 'time'),
            element('span', { class: 'state' }, 'what happened'), ticks);
        return head;
    }

    // ---- a shard ----

    function overviewPath(rows, kind, unit, total) {
        let path = '';
        const least = Math.max(1, total / (kind ? 50 : 150));
        for (const row of rows) {
            if (row.kind !== kind)
                continue;
            const x = row.first * unit, w = Math.max((row.last - row.first + 1) * unit, kind ? 6 : 2);
            path += 'M' + Math.min(x, 1000 - w).toFixed(1) + ' ' + Math.min(row.position, total - least).toFixed(1) +
                'h' + w.toFixed(1) + 'v' + least.toFixed(1) + 'h-' + w.toFixed(1) + 'z';
        }
        return path;
    }

    class Chart {
        constructor(shard, body) {
            this.shard = shard;
            this.body = body;
            this.size = SIZES[1];
            this.from = 0;
            this.onlyTrouble = false;
            this.lane = -1;
            this.isLarge = shard.rows.length > SMALL;
            this.list = element('ol', { class: 'rows', 'aria-label': 'Invocations of ' + shard.id });
            this.head = element('div');
            this.caption = element('p', { class: 'caption', 'aria-live': 'polite' });
            this.filter();
            if (this.isLarge)
                body.append(this.makeControls(), this.makeOverview());
            body.append(element('div', { class: 'chart' }, this.head, this.list), this.caption);
            this.listen();
            const trouble = this.rows.findIndex(row => row.isTrouble);
            this.goTo(trouble > 5 ? trouble - 5 : 0);
        }

        filter() {
            this.rows = this.shard.rows.filter(row =>
                (!this.onlyTrouble || row.isTrouble) && (this.lane < 0 || row.lane === this.lane));
            this.rows.forEach((row, i) => { row.position = i; });
        }

        // ---- what is shown ----

        get end() {
            return Math.min(this.rows.length, this.from + (this.isLarge ? this.size : SMALL));
        }

        get range() {
            const shown = this.rows.slice(this.from, this.end);
            if (!this.isLarge || shown.length === 0)
                return { from: 0, to: Math.max(1, this.shard.n) };
            return { from: Math.min(...shown.map(row => row.first)), to: Math.max(...shown.map(row => row.last)) + 1 };
        }

        goTo(from) {
            const size = this.isLarge ? this.size : SMALL;
            this.from = Math.max(0, Math.min(from, this.rows.length - size));
            this.draw();
        }

        draw() {
            hideTip();
            const range = this.range, shown = this.rows.slice(this.from, this.end);
            this.list.replaceChildren(...shown.map((row, i) => line(row, range, i === 0)));
            this.head.replaceChildren(axis(range, this.list.clientWidth - 250));
            const text = shown.length ? 'Invocations ' + NUMBERS.format(this.from + 1) + ' to ' + NUMBERS.format(this.end) : 'No invocations';
            this.caption.textContent = this.isLarge ? text + ' of ' + NUMBERS.format(this.rows.length) +
                (this.onlyTrouble || this.lane >= 0 ? ' that were chosen' : '') + '.' : '';
            if (this.isLarge)
                this.drawControls();
        }

        // ---- controls of a large shard ----

        button(text, action) {
            const button = element('button', { type: 'button' }, text);
            button.addEventListener('click', action);
            return button;
        }

        select(label, options, action) {
            const select = element('select');
            options.forEach(([value, text]) => select.append(element('option', { value }, text)));
            select.addEventListener('change', () => action(Number(select.value)));
            return [element('label', {}, label, select), select];
        }

        makeControls() {
            const row = element('div', { class: 'controls' });
            this.slider = element('input', { type: 'range', min: 0, step: 1 });
            this.slider.addEventListener('input', () => this.goTo(Number(this.slider.value)));
            row.append(element('label', { class: 'wide' }, 'First invocation shown', this.slider));
            this.back = this.button('Earlier', () => this.goTo(this.from - this.size));
            this.forth = this.button('Later', () => this.goTo(this.from + this.size));
            this.next = this.button('Next trouble', () => this.goToTrouble());
            const [sizes, size] = this.select('Invocations at a time', SIZES.map(n => [n, String(n)]), n => {
                this.size = n;
                this.goTo(this.from);
            });
            size.value = String(this.size);
            const [kinds] = this.select('Show', [[0, 'every invocation'], [1, 'only trouble']], only => this.choose(() => {
                this.onlyTrouble = only === 1;
            }));
            row.append(this.back, this.forth, this.next, sizes, kinds);
            if (data.lanes > 1) {
                const all = Array.from({ length: data.lanes }, (_, i) => [i, String(i + 1)]);
                row.append(this.select('Lane', [[-1, 'all'], ...all], lane => this.choose(() => { this.lane = lane; }))[0]);
            }
            return row;
        }

        choose(change) {
            const first = this.rows[this.from];
            change();
            this.filter();
            this.drawOverview();
            this.goTo(first ? Math.max(0, this.rows.findIndex(row => row.index >= first.index)) : 0);
        }

        goToTrouble() {
            const at = this.rows.findIndex((row, i) => i >= this.end && row.isTrouble);
            this.goTo(at < 0 ? Math.max(0, this.rows.findIndex(row => row.isTrouble) - 5) : at - 5);
        }

        drawControls() {
            const most = Math.max(0, this.rows.length - this.size);
            this.slider.max = most;
            this.slider.value = this.from;
            this.slider.disabled = most === 0;
            this.slider.setAttribute('aria-valuetext', 'invocation ' + (this.from + 1) + ' of ' + this.rows.length);
            this.back.disabled = this.from === 0;
            this.forth.disabled = this.from >= most;
            this.next.disabled = !this.rows.some(row => row.isTrouble);
            const range = this.range, unit = 1000 / Math.max(1, this.shard.n), total = this.rows.length || 1;
            const height = Math.max(this.end - this.from, total / 30), width = Math.max((range.to - range.from) * unit, 12);
            for (const [name, value] of [['x', Math.min(range.from * unit, 1000 - width)],
                ['y', Math.min(this.from, total - height)], ['width', width], ['height', height]])
                this.frame.setAttribute(name, value);
        }

        // ---- the whole shard at a glance ----

        makeOverview() {
            this.overview = element('div', { class: 'overview' });
            this.frame = svg('rect', { class: 'frame' });
            this.drawOverview();
            this.overview.addEventListener('click', event => {
                const box = this.overview.getBoundingClientRect();
                this.goTo(Math.round((event.clientY - box.top) / box.height * this.rows.length - this.size / 2));
            });
            const text = 'The whole shard: records from left to right, invocations from top to bottom. ' +
                'The frame is what is shown below. Trouble is drawn larger than it is.';
            return element('div', {}, this.overview, element('p', { class: 'caption' }, text));
        }

        drawOverview() {
            const total = this.rows.length || 1, unit = 1000 / Math.max(1, this.shard.n);
            const counts = KINDS.map((kind, i) => [this.rows.filter(row => row.kind === i).length, kind.text]);
            const label = 'Overview of ' + many(this.rows.length, 'invocation') + ': ' +
                counts.filter(([n]) => n).map(([n, text]) => NUMBERS.format(n) + ' ' + text).join(', ');
            const picture = svg('svg', { viewBox: '0 0 1000 ' + total, preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
            KINDS.forEach((kind, i) => {
                const path = overviewPath(this.rows, i, unit, total);
                if (path)
                    picture.append(svg('path', { class: 'k-' + kind.name, d: path }));
            });
            picture.append(this.frame);
            this.overview.replaceChildren(picture);
        }

        // ---- keyboard, mouse and touch ----

        listen() {
            this.list.addEventListener('pointerover', event => this.show(event));
            this.list.addEventListener('focusin', event => this.show(event));
            this.list.addEventListener('click', event => this.show(event));
            this.list.addEventListener('keydown', event => this.key(event));
            this.list.addEventListener('pointerleave', event => {
                if (event.pointerType === 'mouse' && event.relatedTarget !== tip && !this.list.contains(document.activeElement))
                    hideTip();
            });
        }

        show(event) {
            const button = event.target.closest('button');
            if (!button || (event.type === 'pointerover' && event.pointerType !== 'mouse'))
                return;
            if (event.type === 'focusin') {
                this.list.querySelectorAll('[tabindex="0"]').forEach(other => other.setAttribute('tabindex', '-1'));
                button.setAttribute('tabindex', '0');
            }
            showTip(button, button.row);
        }

        key(event) {
            const button = event.target.closest('button'), page = this.end - this.from;
            const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
            const step = steps[event.key];
            if (!button || !step)
                return;
            event.preventDefault();
            this.focus(Math.max(0, Math.min(this.rows.length - 1, button.row.position + step)));
        }

        focus(position) {
            if (position < this.from || position >= this.end)
                this.goTo(position < this.from ? position : position - (this.end - this.from) + 1);
            const button = this.list.children[position - this.from].firstChild;
            button.focus({ preventScroll: true });
            button.scrollIntoView({ block: 'nearest' });
            hideTip();
            showTip(button, button.row);
        }

        // A link of the table: the invocation in the middle, with its tooltip.
        reveal(index) {
            const position = this.rows.findIndex(row => row.index === index);
            if (position < 0) {
                this.onlyTrouble = false;
                this.lane = -1;
                this.filter();
                this.drawOverview();
                this.body.querySelectorAll('select').forEach((select, i) => { if (i > 0) select.selectedIndex = 0; });
                return this.reveal(index);
            }
            this.goTo(position - Math.floor(this.size / 2));
            const button = this.list.children[position - this.from].firstChild;
            button.scrollIntoView({ block: 'center' });
            this.focus(position);
        }
    }

    // ---- all shards ----

    const place = document.getElementById('picture');
    place.replaceChildren();
    document.documentElement.style.setProperty('--lanes', data.lanes);

    function shardText(shard) {
        const troubles = shard.rows.filter(row => row.isTrouble).length;
        return many(shard.n, 'record') + ', ' + many(shard.rows.length, 'invocation') + ', ' +
            (troubles ? NUMBERS.format(troubles) + ' with trouble' : 'no trouble');
    }

    shards.forEach(shard => {
        const body = element('div');
        const details = element('details', { class: 'shard' },
            element('summary', {}, element('h3', {}, foreign(shard.id)), ': ' + shardText(shard)), body);
        place.append(details);
        shard.open = () => {
            details.open = true;
            if (!shard.chart)
                shard.chart = new Chart(shard, body);
            return shard.chart;
        };
        details.addEventListener('toggle', () => { if (details.open) shard.open(); });
    });
    const troubled = shards.filter(shard => shard.rows.some(row => row.isTrouble));
    (shards.length <= OPEN_SHARDS ? shards : troubled.slice(0, OPEN_SHARDS)).forEach(shard => shard.open());
    document.querySelector('main').append(tip);

    function follow() {
        const at = /^#i-(\d+)-(\d+)$/.exec(location.hash);
        if (at && shards[at[1]] && shards[at[1]].rows[at[2]])
            shards[at[1]].open().reveal(Number(at[2]));
    }

    window.addEventListener('hashchange', follow);
    document.addEventListener('click', event => {
        const link = event.target.closest('a[href^="#i-"]');
        if (link && link.getAttribute('href') === location.hash) {
            event.preventDefault();
            follow();
        } else if (!event.target.closest('.rows, .tip')) {
            hideTip();
        }
    });
    document.addEventListener('keydown', event => { if (event.key === 'Escape') hideTip(); });
    tip.addEventListener('pointerleave', () => { if (!tipOf || tipOf !== document.activeElement) hideTip(); });
    let width = window.innerWidth;  // (A phone's address bar changes the height alone.)
    window.addEventListener('resize', () => {
        if (window.innerWidth !== width)
            shards.forEach(shard => { if (shard.chart) shard.chart.draw(); });
        width = window.innerWidth;
    });
    follow();
})();
