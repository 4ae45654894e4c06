import { svelte } from '@sveltejs/vite-plugin-svelte';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import vue from '@vitejs/plugin-vue';
import { readdirSync } from 'node:fs';
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/built/vite/',
  plugins: [react(), vue(), svelte(), tailwindcss()],
  build: { rolldownOptions: { input: readdirSync('.').filter((name) => name.endsWith('.html')) } },
});
