const topics = Array.from({ length: 30 }, (_, index) => String(index + 1).padStart(2, '0'));

export default {
  title: 'Ferry',
  base: '/built/vitepress/',
  themeConfig: {
    logo: '/logo.svg',
    nav: [{ text: 'Guide', link: '/guide' }, { text: 'Topics', link: '/topic-01' }],
    sidebar: [
      { text: 'Start', items: [{ text: 'Ferry', link: '/' }, { text: 'The guide', link: '/guide' }] },
      { text: 'Topics', items: topics.map((topic) => ({ text: `Topic ${topic}`, link: `/topic-${topic}` })) },
    ],
    footer: { message: 'Made for a test.' },
  },
};
